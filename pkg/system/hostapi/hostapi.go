// Package api says what package system needs from the machine below it, and
// provides that machine.
//
// Drivers call package system and come here only for New, or to write a host of
// their own for tests. The package clause is older than the directory's name and
// stays, so that existing imports compile; import it as systemapi.
//
// It compiles on every system. Elsewhere than on Windows the methods of the host that
// New returns fail with an error that matches errors.ErrUnsupported; tests use the
// emulated node of pkg/winsim instead. All hosts made here are safe for concurrent use.
package api

import (
	"context"

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
//
// A host may also have a method WithContext(context.Context) HostAPI; package
// system then calls the host it returns, bound to the context of the request.
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

// New returns the host of the machine we run on. It is cheap, and all hosts it returns
// share their locks: drivers make a new one for every call.
func New() HostAPI { return newHost(local.Machine(), &thisMachine) }

// NewOn returns the host of a given machine. Outside this module the only machines to be
// had are emulated ones: NewOn(node) with a *winsim.Node. Calls through two hosts of the
// same machine made so do not know of each other.
func NewOn(m win.Machine) HostAPI { return newHost(m, &shared{}) }

// thisMachine is what all calls to the machine we run on share.
var thisMachine shared

func newHost(m win.Machine, s *shared) host {
	return host{m: m, shared: s, ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}
