package api

import (
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func failed(op, name string, err error) error {
	text, known := advice[winerr.CodeOf(err)]
	switch kind := winerr.KindOf(err); {
	case known:
		return winerr.As(kind, op, name, err, text)
	case kind == winerr.NotFound:
		// Any other code of this kind is about a file: the service itself exists.
		return winerr.As(winerr.InUse, op, name, err, "the program of the service is missing")
	default:
		return winerr.Wrap(op, name, err)
	}
}

// advice is what operators can do about a failure.
var advice = map[winerr.Code]string{
	winerr.AccessDenied:             "run csi-proxy as LocalSystem or as an administrator",
	winerr.InvalidServiceControl:    "it cannot be stopped while the node runs",
	winerr.ServiceRequestTimeout:    "look for it in the System event log, and try again",
	winerr.ServiceDisabled:          "set its start type to manual first",
	winerr.ServiceDoesNotExist:      "install it, and use its short name rather than its display name",
	winerr.ServiceDependencyFail:    "look in the System event log for the one that failed",
	winerr.ServiceDependencyDeleted: "install what it depends on",
	winerr.ServiceLogonFailed:       "check the account and the password of the service",
	winerr.ServiceMarkedForDelete:   "close what has it open, such as the Services console, or restart the node",
	winerr.ShutdownInProgress:       "try again when the node is up",
}

// ended describes a service that has stopped after its start.
func ended(op, name string, status win.ServiceStatus) error {
	cause := errors.New("it stopped again without an error")
	switch code := winerr.Code(status.ExitCode); {
	case code == winerr.ServiceSpecificError:
		cause = stopped{winerr.ServiceSpecificError, status.SpecificExitCode}
	case code != 0:
		cause = stopped{code, 0}
	}
	return winerr.As(winerr.InUse, op, name, cause, "see the event log for the reason")
}

type stopped struct {
	code     winerr.Code
	specific uint32
}

func (s stopped) Error() string {
	text := "it stopped again: " + s.code.Error()
	if s.code == winerr.ServiceSpecificError {
		text += fmt.Sprintf(", number %d (%#x)", s.specific, s.specific)
	}
	return text
}

// Unwrap returns the code, which operators search for.
func (s stopped) Unwrap() error { return s.code }
