package winsim

import (
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// FirmwareTable implements win.System.
func (n *Node) FirmwareTable(ctx context.Context) ([]byte, error) {
	if err := n.beginCall(ctx, "FirmwareTable", ""); err != nil {
		return nil, err
	}
	return slices.Clone(n.firmware.table), nil
}

// BIOSSerialNumber implements win.System.
func (n *Node) BIOSSerialNumber(ctx context.Context) (string, error) {
	if err := n.beginCall(ctx, "BIOSSerialNumber", ""); err != nil {
		return "", err
	}
	return n.firmware.wmiSerial, nil
}

// Uptime implements win.System.
func (n *Node) Uptime(ctx context.Context) (time.Duration, error) {
	if err := n.beginCall(ctx, "Uptime", ""); err != nil {
		return 0, err
	}
	n.lock()
	defer n.mu.Unlock()
	return n.clock.now().Sub(n.booted), nil
}

// ServiceConfig implements win.System.
func (n *Node) ServiceConfig(ctx context.Context, name string) (win.ServiceConfig, error) {
	var config win.ServiceConfig
	err := n.onService(ctx, "ServiceConfig", name, func(s *service) error {
		config = win.ServiceConfig{DisplayName: s.DisplayName, StartType: startTypes[s.StartType]}
		return nil
	})
	return config, err
}

// ServiceStatus implements win.System.
func (n *Node) ServiceStatus(ctx context.Context, name string) (win.ServiceStatus, error) {
	var status win.ServiceStatus
	err := n.onService(ctx, "ServiceStatus", name, func(s *service) error {
		status = s.status()
		return nil
	})
	return status, err
}

// StartService implements win.System.
func (n *Node) StartService(ctx context.Context, name string) error {
	return n.onService(ctx, "StartService", name, n.beginStart)
}

// StopService implements win.System.
func (n *Node) StopService(ctx context.Context, name string) error {
	return n.onService(ctx, "StopService", name, n.beginStop)
}

// ActiveDependents implements win.System.
func (n *Node) ActiveDependents(ctx context.Context, name string) ([]string, error) {
	var names []string
	err := n.onService(ctx, "ActiveDependents", name, func(s *service) error {
		for _, dependent := range n.activeDependents(s) {
			names = append(names, dependent.Name)
		}
		return nil
	})
	return names, err
}

// onService begins a call about a service and runs it.
func (n *Node) onService(ctx context.Context, call, name string, do func(*service) error) error {
	if err := n.beginCall(ctx, call, name); err != nil {
		return err
	}
	n.lock()
	defer n.mu.Unlock()
	s, err := n.service(name)
	if err != nil {
		return err
	}
	return do(s)
}
