package winsim

import (
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// FirmwareTable implements win.System.
func (n machine) FirmwareTable(_ context.Context) ([]byte, error) {
	return slices.Clone(n.firmware.table), nil
}

// BIOSSerialNumber implements win.System.
func (n machine) BIOSSerialNumber(_ context.Context) (string, error) {
	return n.firmware.wmiSerial, nil
}

// Uptime implements win.System.
func (n machine) Uptime(_ context.Context) (time.Duration, error) {
	n.lock()
	defer n.mu.Unlock()
	return n.now().Sub(n.booted), nil
}

// ServiceConfig implements win.System.
func (n machine) ServiceConfig(_ context.Context, name string) (win.ServiceConfig, error) {
	var config win.ServiceConfig
	err := n.onService(name, func(s *service) error {
		config = win.ServiceConfig{DisplayName: s.DisplayName, StartType: startTypes[s.StartType]}
		return nil
	})
	return config, err
}

// ServiceStatus implements win.System.
func (n machine) ServiceStatus(_ context.Context, name string) (win.ServiceStatus, error) {
	var status win.ServiceStatus
	err := n.onService(name, func(s *service) error {
		status = s.status()
		return nil
	})
	return status, err
}

// StartService implements win.System.
func (n machine) StartService(_ context.Context, name string) error {
	return n.onService(name, n.beginStart)
}

// StopService implements win.System.
func (n machine) StopService(_ context.Context, name string) error {
	return n.onService(name, n.beginStop)
}

// ActiveDependents implements win.System.
func (n machine) ActiveDependents(_ context.Context, name string) ([]string, error) {
	var names []string
	err := n.onService(name, func(s *service) error {
		for _, dependent := range n.activeDependents(s) {
			names = append(names, dependent.Name)
		}
		return nil
	})
	return names, err
}

// onService runs a call about a service.
func (n *Node) onService(name string, do func(*service) error) error {
	n.lock()
	defer n.mu.Unlock()
	s, err := n.service(name)
	if err != nil {
		return err
	}
	return do(s)
}
