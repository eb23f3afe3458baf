//go:build !windows

package local

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func (machine) FirmwareTable(context.Context) ([]byte, error) { return nil, ErrNotWindows }

func (machine) BIOSSerialNumber(context.Context) (string, error) { return "", ErrNotWindows }

func (machine) Uptime(context.Context) (time.Duration, error) { return 0, ErrNotWindows }

func (machine) ServiceConfig(context.Context, string) (win.ServiceConfig, error) {
	return win.ServiceConfig{}, ErrNotWindows
}

func (machine) ServiceStatus(context.Context, string) (win.ServiceStatus, error) {
	return win.ServiceStatus{}, ErrNotWindows
}

func (machine) StartService(context.Context, string) error { return ErrNotWindows }

func (machine) StopService(context.Context, string) error { return ErrNotWindows }

func (machine) ActiveDependents(context.Context, string) ([]string, error) {
	return nil, ErrNotWindows
}
