// Package api says what package system needs from the machine below it, and
// provides that machine.
//
// Drivers call package system and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as systemapi.
//
// All hosts made here are safe for concurrent use.
package api

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// ServiceInfo describes a service in Windows' own words.
type ServiceInfo struct {
	// DisplayName is the name people see.
	DisplayName string
	// StartType is Boot, System, Auto, Manual or Disabled; Automatic is
	// understood too.
	StartType string
	// Status is Stopped, Start Pending, Stop Pending, Running, Continue
	// Pending, Pause Pending or Paused; anything else reads as unknown.
	Status string
}

// HostAPI is a machine with a serial number and services. A call on a service
// that is not installed fails with an error for which errors.Is(err,
// fs.ErrNotExist) holds.
type HostAPI interface {
	// GetBIOSSerialNumber returns the serial number the firmware reports, or an empty
	// text if it reports none.
	GetBIOSSerialNumber() (string, error)

	// GetService describes the service with that short name.
	GetService(name string) (*ServiceInfo, error)

	// StartService starts the service and waits until it runs.
	StartService(name string) error

	// StopService stops the service, with force also those that depend on it,
	// and waits until it has stopped.
	StopService(name string, force bool) error
}

// Extended is HostAPI with what was added since it was published: hosts that drivers have written still compile. Those of
// this package have it.
type Extended interface {
	HostAPI

	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) HostAPI
	// OnlyServices returns the same host, which starts and stops only the services on the list, those that a forced stop also
	// stops included. Package system refuses forced stops on a host without it.
	OnlyServices(list *servicelist.List) HostAPI
}

// New returns the host of the machine we run on. It is cheap, and all hosts it returns
// share their locks: drivers make a new one for every call.
func New() HostAPI { return bind(host{m: local.Machine(), services: &servicesHere}) }

// NewOn returns the host of a given machine. Outside this module that is an emulated one:
// NewOn(node) with a *winsim.Node. Two hosts made so for the same machine do not share their
// locks.
func NewOn(m win.Machine) HostAPI { return bind(host{m: m, services: &tasks.Locks[string]{}}) }

// servicesHere are the locks of the services of the machine we run on.
var servicesHere tasks.Locks[string]
