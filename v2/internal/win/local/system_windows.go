package local

import (
	"context"
	"time"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// FirmwareTable copies what Windows has kept in memory since its start, so it cannot hang.
func (machine) FirmwareTable(context.Context) ([]byte, error) { return winapi.SMBIOS() }

// BIOSSerialNumber is https://learn.microsoft.com/windows/win32/cimwin32prov/win32-bios
func (machine) BIOSSerialNumber(ctx context.Context) (string, error) {
	const property = "SerialNumber"
	instances, err := cim.Query(ctx, cim.Object{Namespace: cim.V2, Class: "Win32_BIOS"}, property)
	if err != nil {
		return "", err
	}
	for _, bios := range instances {
		if serial, ok := bios[property].(string); ok && serial != "" {
			return serial, nil
		}
	}
	return "", nil
}

// Uptime reads a counter in memory, so it cannot hang.
// https://learn.microsoft.com/windows/win32/api/sysinfoapi/nf-sysinfoapi-gettickcount64
func (machine) Uptime(context.Context) (time.Duration, error) {
	return windows.DurationSinceBoot(), nil
}

// All that follows asks the service manager, another process. It does one thing at a time
// in places, and to start or to control a service it waits for that service, for up to 30
// seconds.

func (machine) ServiceConfig(_ context.Context, name string) (win.ServiceConfig, error) {
	return withService(name, winapi.ServiceQueryConfig, func(s winapi.Service) (win.ServiceConfig, error) {
		displayName, startType, err := s.Config()
		return win.ServiceConfig{DisplayName: displayName, StartType: win.StartType(startType)}, err
	})
}

func (machine) ServiceStatus(_ context.Context, name string) (win.ServiceStatus, error) {
	return withService(name, winapi.ServiceQueryStatus, func(s winapi.Service) (win.ServiceStatus, error) {
		status, err := s.Status()
		return win.ServiceStatus{
			State:            win.ServiceState(status.CurrentState),
			ExitCode:         status.Win32ExitCode,
			SpecificExitCode: status.ServiceSpecificExitCode,
			WaitHint:         time.Duration(status.WaitHint) * time.Millisecond,
			OwnProcess:       status.ProcessId == windows.GetCurrentProcessId(),
		}, err
	})
}

func (machine) ActiveDependents(_ context.Context, name string) ([]string, error) {
	return withService(name, winapi.ServiceEnumerateDependents, winapi.Service.ActiveDependents)
}

func (machine) StartService(_ context.Context, name string) error {
	_, err := withService(name, winapi.ServiceStart, func(s winapi.Service) (struct{}, error) {
		return struct{}{}, s.Start()
	})
	return err
}

func (machine) StopService(_ context.Context, name string) error {
	_, err := withService(name, winapi.ServiceStop, func(s winapi.Service) (struct{}, error) {
		return struct{}{}, s.Stop()
	})
	return err
}

func withService[T any](name string, right winapi.ServiceRight, call func(winapi.Service) (T, error)) (T, error) {
	service, err := winapi.OpenService(name, right)
	if err != nil {
		var none T
		return none, err
	}
	defer service.Close()
	return call(service)
}
