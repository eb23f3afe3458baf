package win

import (
	"context"
	"time"
)

// System is the part of a machine that deals with its firmware, its start and its services.
//
// Services go by their short names, whose case does not matter, not by display names. For a
// service that is not installed every call fails with ERROR_SERVICE_DOES_NOT_EXIST (1060). Each
// call opens the service with the rights it needs and no others, and closes it before it returns.
type System interface {
	// FirmwareTable returns the SMBIOS tables as RawSMBIOSData, which package smbios
	// reads: GetSystemFirmwareTable with the provider 'RSMB'.
	FirmwareTable(ctx context.Context) ([]byte, error)

	// BIOSSerialNumber is SerialNumber of WMI's Win32_BIOS. It may be empty.
	BIOSSerialNumber(ctx context.Context) (string, error)

	// Uptime is how long Windows has been running: GetTickCount64.
	Uptime(ctx context.Context) (time.Duration, error)

	// ServiceConfig is QueryServiceConfig.
	ServiceConfig(ctx context.Context, name string) (ServiceConfig, error)

	// ServiceStatus is QueryServiceStatusEx.
	ServiceStatus(ctx context.Context, name string) (ServiceStatus, error)

	// StartService asks the service manager to start a service, and those it depends on
	// before it. It returns when the service is starting: StartService. It fails with
	// ERROR_SERVICE_ALREADY_RUNNING (1056) if it is started already, also if it is paused.
	StartService(ctx context.Context, name string) error

	// StopService asks a service to stop, and returns when the service has the request:
	// ControlService with SERVICE_CONTROL_STOP. It fails with
	// ERROR_DEPENDENT_SERVICES_RUNNING (1051) if services that depend on it are active,
	// ERROR_SERVICE_CANNOT_ACCEPT_CTRL (1061) while it stops, ERROR_INVALID_SERVICE_CONTROL
	// (1052) if it does not accept a stop, which most services do not while they start, and
	// ERROR_SERVICE_NOT_ACTIVE (1062) if it is stopped.
	StopService(ctx context.Context, name string) error

	// ActiveDependents lists the services that depend on this one, also by way of
	// other services, and are not stopped: EnumDependentServices. They can be stopped in the
	// order of the list.
	ActiveDependents(ctx context.Context, name string) ([]string, error)
}

// ServiceConfig is the part of QUERY_SERVICE_CONFIG that we use.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-query_service_configw
type ServiceConfig struct {
	DisplayName string
	StartType   StartType
}

// StartType says when Windows starts a service, SERVICE_..._START.
type StartType uint32

// The start types. The first two are of drivers.
const (
	StartBoot      StartType = 0
	StartSystem    StartType = 1
	StartAutomatic StartType = 2
	StartManual    StartType = 3
	StartDisabled  StartType = 4
)

// ServiceStatus is the part of SERVICE_STATUS_PROCESS that we use.
// https://learn.microsoft.com/windows/win32/api/winsvc/ns-winsvc-service_status_process
type ServiceStatus struct {
	State ServiceState
	// ExitCode is the Windows code with which the service has stopped.
	// ERROR_SERVICE_SPECIFIC_ERROR (1066) means that its own code is SpecificExitCode.
	ExitCode         uint32
	SpecificExitCode uint32
	// WaitHint is how long the service says it needs for what is pending.
	WaitHint time.Duration
	// OwnProcess says that the service runs in the process that asks.
	OwnProcess bool
}

// ServiceState is what a service does now.
type ServiceState uint32

// The states.
const (
	ServiceStopped         ServiceState = 1
	ServiceStartPending    ServiceState = 2
	ServiceStopPending     ServiceState = 3
	ServiceRunning         ServiceState = 4
	ServiceContinuePending ServiceState = 5
	ServicePausePending    ServiceState = 6
	ServicePaused          ServiceState = 7
)
