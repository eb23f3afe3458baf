// Package system is the library's view of a Windows node as a machine: its serial
// number, and the services that storage depends on.
//
// It is not a general service manager: it neither installs nor configures services.
// Services are shared by everything on the node, so starting and above all
// stopping one affects other drivers too.
//
// Start with New and the host of this machine:
//
//	node, err := system.New(systemapi.New())
//
// On systems other than Windows that host fails with errors.ErrUnsupported; a host of your own works everywhere.
//
// A System is safe for concurrent use if its host is; the host of this machine
// is. Every method may be repeated: a driver that lost an answer asks again. Calls that
// start or stop one service wait for each other. A caller whose context ends gets its
// answer at once; what Windows was asked to do goes on, and a repeated call waits for it.
package system

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

// Interface is what a driver can ask about the node. Errors match those of the
// standard library: fs.ErrNotExist for a service that is not
// installed, fs.ErrInvalid for a wrong request, and so on.
type Interface interface {
	// GetBIOSSerialNumber returns the serial number of the machine, or an empty text
	// if it has none.
	GetBIOSSerialNumber(context.Context, *GetBIOSSerialNumberRequest) (*GetBIOSSerialNumberResponse, error)

	// GetService returns how a service starts and what it does now.
	GetService(context.Context, *GetServiceRequest) (*GetServiceResponse, error)

	// StartService starts a service with what it depends on, and waits until it runs:
	// until the deadline of the context, or 30 seconds if it has none. A service that
	// runs stays as it is, and the call succeeds. One that is disabled, or stops again
	// by itself, is an error.
	StartService(context.Context, *StartServiceRequest) (*StartServiceResponse, error)

	// StopService stops a service, and waits as StartService does until it has. A
	// service that is stopped stays as it is, and the call succeeds. If services that
	// depend on it run they are stopped as well, with Force; without, it is an error that
	// names them.
	StopService(context.Context, *StopServiceRequest) (*StopServiceResponse, error)
}

var _ Interface = (*System)(nil)

// System implements Interface over a host.
type System struct {
	host       systemapi.HostAPI
	allowed    *servicelist.List // nil if there is no limit
	hostLimits bool              // the host has the list, too
}

const opOpen = "open system library"

// New returns a System that works on the given host, which must not be nil.
func New(hostAPI systemapi.HostAPI, options ...Option) (*System, error) {
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, opOpen, "", "the host API is nil")
	}
	s := &System{host: hostAPI}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, err
		}
	}
	s.limit()
	return s, nil
}

// GetBIOSSerialNumber implements Interface.
func (s *System) GetBIOSSerialNumber(ctx context.Context, request *GetBIOSSerialNumberRequest) (*GetBIOSSerialNumberResponse, error) {
	const op = "get BIOS serial number"
	return hostctx.Do(ctx, op, s.host, request, func(h systemapi.HostAPI, out *GetBIOSSerialNumberResponse) (err error) {
		out.SerialNumber, err = h.GetBIOSSerialNumber()
		return winerr.Wrap(op, "", err)
	})
}

// GetService implements Interface.
func (s *System) GetService(ctx context.Context, request *GetServiceRequest) (*GetServiceResponse, error) {
	const op = "get service"
	return hostctx.Do(ctx, op, s.host, request, func(h systemapi.HostAPI, out *GetServiceResponse) error {
		if err := checkName(op, request.Name); err != nil {
			return err
		}
		info, err := h.GetService(request.Name)
		if err != nil {
			return winerr.Wrap(op, request.Name, err)
		}
		if info == nil {
			return winerr.New(winerr.Internal, op, request.Name, "the host gave no answer")
		}
		startType, known := startTypes[info.StartType]
		if !known {
			return winerr.New(winerr.Internal, op, request.Name, "the host gave the unknown start type %q", info.StartType)
		}
		*out = GetServiceResponse{DisplayName: info.DisplayName, StartType: startType, Status: statuses[info.Status]}
		return nil
	})
}

// StartService implements Interface.
func (s *System) StartService(ctx context.Context, request *StartServiceRequest) (*StartServiceResponse, error) {
	const op = "start service"
	return hostctx.Do(ctx, op, s.host, request, func(h systemapi.HostAPI, _ *StartServiceResponse) error {
		if err := checkName(op, request.Name); err != nil {
			return err
		}
		if err := s.guard(op, request.Name, false); err != nil {
			return err
		}
		return winerr.Wrap(op, request.Name, h.StartService(request.Name))
	})
}

// StopService implements Interface.
func (s *System) StopService(ctx context.Context, request *StopServiceRequest) (*StopServiceResponse, error) {
	const op = "stop service"
	return hostctx.Do(ctx, op, s.host, request, func(h systemapi.HostAPI, _ *StopServiceResponse) error {
		if err := checkName(op, request.Name); err != nil {
			return err
		}
		if err := s.guard(op, request.Name, request.Force); err != nil {
			return err
		}
		return winerr.Wrap(op, request.Name, h.StopService(request.Name, request.Force))
	})
}

// startTypes translates the words of Win32_Service.StartMode, and the one that
// .NET's ServiceController spells differently. There is no value for an unknown
// word, and a wrong guess could make a driver change the service.
//
// https://learn.microsoft.com/windows/win32/cimwin32prov/win32-service
var startTypes = map[string]StartType{
	"Boot":      START_TYPE_BOOT,
	"System":    START_TYPE_SYSTEM,
	"Auto":      START_TYPE_AUTOMATIC,
	"Automatic": START_TYPE_AUTOMATIC,
	"Manual":    START_TYPE_MANUAL,
	"Disabled":  START_TYPE_DISABLED,
}

// statuses translates the words of Win32_Service.State. Any other word, the
// documented "Unknown" included, is the zero value SERVICE_STATUS_UNKNOWN.
var statuses = map[string]ServiceStatus{
	"Stopped":          SERVICE_STATUS_STOPPED,
	"Start Pending":    SERVICE_STATUS_START_PENDING,
	"Stop Pending":     SERVICE_STATUS_STOP_PENDING,
	"Running":          SERVICE_STATUS_RUNNING,
	"Continue Pending": SERVICE_STATUS_CONTINUE_PENDING,
	"Pause Pending":    SERVICE_STATUS_PAUSE_PENDING,
	"Paused":           SERVICE_STATUS_PAUSED,
}

// checkName refuses what cannot be the name of a service. The error quotes only the beginning of
// it, because it can be anything.
func checkName(op, name string) error {
	if problem := servicelist.Check(name); problem != "" {
		return winerr.New(winerr.Invalid, op, "", "%.100q is not the name of a service: %s", name, problem)
	}
	return nil
}
