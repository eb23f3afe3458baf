package system

// GetBIOSSerialNumberRequest asks for the serial number of the machine.
type GetBIOSSerialNumberRequest struct{}

// GetBIOSSerialNumberResponse holds the serial number of the machine.
type GetBIOSSerialNumberResponse struct {
	// SerialNumber is the text the firmware reports without the spaces after it, or
	// empty.
	SerialNumber string
}

// GetServiceRequest names a service.
type GetServiceRequest struct {
	// Name is the short name of the service, such as MSiSCSI. Upper and lower
	// case are the same to Windows.
	Name string
}

// GetServiceResponse describes a service.
type GetServiceResponse struct {
	// DisplayName is the name people see.
	DisplayName string
	// StartType is when Windows starts the service.
	StartType StartType
	// Status is what the service does now.
	Status ServiceStatus
}

// ServiceStatus is what a service does now.
type ServiceStatus uint32

// The states of a service, numbered as on the wire.
const (
	// SERVICE_STATUS_UNKNOWN is a state this library has no value for.
	SERVICE_STATUS_UNKNOWN ServiceStatus = iota
	// SERVICE_STATUS_STOPPED means the service does not run.
	SERVICE_STATUS_STOPPED
	// SERVICE_STATUS_START_PENDING means the service is about to run.
	SERVICE_STATUS_START_PENDING
	// SERVICE_STATUS_STOP_PENDING means the service is about to stop.
	SERVICE_STATUS_STOP_PENDING
	// SERVICE_STATUS_RUNNING means the service runs.
	SERVICE_STATUS_RUNNING
	// SERVICE_STATUS_CONTINUE_PENDING means the service is about to run again
	// after a pause.
	SERVICE_STATUS_CONTINUE_PENDING
	// SERVICE_STATUS_PAUSE_PENDING means the service is about to pause.
	SERVICE_STATUS_PAUSE_PENDING
	// SERVICE_STATUS_PAUSED means the service is loaded but does no work.
	SERVICE_STATUS_PAUSED
)

// StartServiceRequest names the service to start.
type StartServiceRequest struct {
	// Name is the short name of the service.
	Name string
}

// StartServiceResponse is empty: the service runs.
type StartServiceResponse struct{}

// StartType is when Windows starts a service.
type StartType uint32

// The ways a service starts, numbered as on the wire.
const (
	// START_TYPE_BOOT is a driver that the boot loader starts.
	START_TYPE_BOOT StartType = iota
	// START_TYPE_SYSTEM is a driver that starts while Windows does.
	START_TYPE_SYSTEM
	// START_TYPE_AUTOMATIC is a service that starts without being asked, maybe
	// with a delay.
	START_TYPE_AUTOMATIC
	// START_TYPE_MANUAL is a service that starts on request.
	START_TYPE_MANUAL
	// START_TYPE_DISABLED is a service that cannot be started.
	START_TYPE_DISABLED
)

// StopServiceRequest names the service to stop.
type StopServiceRequest struct {
	// Name is the short name of the service.
	Name string
	// Force stops the services that depend on this one first. Without it, a
	// service on which running services depend is not stopped.
	Force bool
}

// StopServiceResponse is empty: the service is stopped.
type StopServiceResponse struct{}
