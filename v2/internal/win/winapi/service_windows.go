package winapi

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// ServiceRight is what a service is opened for.
// https://learn.microsoft.com/windows/win32/services/service-security-and-access-rights
type ServiceRight uint32

// The rights our calls need.
const (
	ServiceQueryConfig         ServiceRight = windows.SERVICE_QUERY_CONFIG
	ServiceQueryStatus         ServiceRight = windows.SERVICE_QUERY_STATUS
	ServiceEnumerateDependents ServiceRight = windows.SERVICE_ENUMERATE_DEPENDENTS
	ServiceStart               ServiceRight = windows.SERVICE_START
	ServiceStop                ServiceRight = windows.SERVICE_STOP
)

// Service is an open service. The caller of OpenService closes it.
type Service struct{ handle windows.Handle }

// OpenService opens a service of this machine by its short name.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-openservicew
func OpenService(name string, right ServiceRight) (Service, error) {
	p, err := utf16Ptr(name)
	if err != nil {
		return Service{}, err
	}
	manager, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_CONNECT)
	if err != nil {
		return Service{}, Error(err)
	}
	defer func() { _ = windows.CloseServiceHandle(manager) }()
	handle, err := windows.OpenService(manager, p, uint32(right))
	if err != nil {
		return Service{}, Error(err)
	}
	return Service{handle}, nil
}

// Close closes the service.
func (s Service) Close() { _ = windows.CloseServiceHandle(s.handle) }

// serviceAnswer is the size of the first buffer for an answer about a service. The longest
// that Windows documents has 8 KiB for a configuration, and 64 KiB for dependents.
const serviceAnswer = 1 << 10

// Config returns the name for people and the start type, SERVICE_..._START.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw
func (s Service) Config() (displayName string, startType uint32, err error) {
	answer, err := grow(serviceAnswer, nil, func(buffer []byte) (int, error) {
		var needed uint32
		config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
		return len(buffer), Error(windows.QueryServiceConfig(s.handle, config, Length(buffer), &needed))
	})
	if err != nil {
		return "", 0, err
	}
	config := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&answer[0]))
	return windows.UTF16PtrToString(config.DisplayName), config.StartType, nil
}

// Status returns what the service does now, and in which process.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryservicestatusex
func (s Service) Status() (windows.SERVICE_STATUS_PROCESS, error) {
	var status windows.SERVICE_STATUS_PROCESS
	var needed uint32
	err := windows.QueryServiceStatusEx(s.handle, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&status)), uint32(unsafe.Sizeof(status)), &needed)
	return status, Error(err)
}

// ActiveDependents returns the names of the services that depend on this one and are not
// stopped, the one to be stopped first at the beginning.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumdependentservicesw
func (s Service) ActiveDependents() ([]string, error) {
	var returned uint32
	answer, err := grow(serviceAnswer, nil, func(buffer []byte) (int, error) {
		var needed uint32
		services := (*windows.ENUM_SERVICE_STATUS)(unsafe.Pointer(&buffer[0]))
		return len(buffer), Error(windows.EnumDependentServices(s.handle, windows.SERVICE_ACTIVE, services, Length(buffer), &needed, &returned))
	})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, returned)
	for _, service := range unsafe.Slice((*windows.ENUM_SERVICE_STATUS)(unsafe.Pointer(&answer[0])), returned) {
		names = append(names, windows.UTF16PtrToString(service.ServiceName))
	}
	return names, nil
}

// Start asks the service manager to start the service.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-startservicew
func (s Service) Start() error { return Error(windows.StartService(s.handle, 0, nil)) }

// Stop asks the service to stop.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-controlservice
func (s Service) Stop() error {
	var status windows.SERVICE_STATUS
	return Error(windows.ControlService(s.handle, windows.SERVICE_CONTROL_STOP, &status))
}
