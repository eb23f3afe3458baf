package cim

import (
	"errors"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Error is a failure of WMI or COM. What a method returns is not one.
type Error struct {
	Code winerr.Code // a code of Windows, or an HRESULT
	Text string      // what WMI says to it, in the language of the machine; may be empty
}

// failure makes an Error of what a COM call answers. An exception is only the envelope
// of the code inside, and for codes of Windows so is the HRESULT.
// https://learn.microsoft.com/windows/win32/com/structure-of-com-error-codes
func failure(hresult, scode uint32, text string) *Error {
	const exception = 0x80020009 // DISP_E_EXCEPTION
	if hresult == exception && scode != 0 {
		hresult = scode
	}
	if hresult>>16 == 0x8007 { // FACILITY_WIN32, and a failure
		hresult &= 0xFFFF
	}
	return &Error{winerr.Code(hresult), strings.TrimSpace(text)}
}

func (e *Error) Error() string {
	if e.Text == "" {
		return "WMI: " + e.Code.Error()
	}
	return "WMI: " + e.Text + ": " + e.Code.Error()
}

// Codes of WMI and COM that mean something to us. Wine's dlls/wbemprox/tests/services.c has errInvalidNamespace on
// Windows.
// https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants
const (
	errRPCUnavailable   winerr.Code = 1722       // RPC_S_SERVER_UNAVAILABLE
	errRPCFailed        winerr.Code = 1726       // RPC_S_CALL_FAILED
	errRPCNotExecuted   winerr.Code = 1727       // RPC_S_CALL_FAILED_DNE: it did not execute
	errNotImplemented   winerr.Code = 0x80004001 // E_NOTIMPL
	errServerDied       winerr.Code = 0x80010007 // RPC_E_SERVER_DIED
	errServerDiedDNE    winerr.Code = 0x80010012 // RPC_E_SERVER_DIED_DNE: it did not execute
	errDisconnected     winerr.Code = 0x80010108 // RPC_E_DISCONNECTED
	errClassNotReg      winerr.Code = 0x80040154 // REGDB_E_CLASSNOTREG
	errClassString      winerr.Code = 0x800401F3 // CO_E_CLASSSTRING
	errWMIAccessDenied  winerr.Code = 0x80041003 // WBEM_E_ACCESS_DENIED
	errWMINotSupported  winerr.Code = 0x8004100C // WBEM_E_NOT_SUPPORTED
	errInvalidNamespace winerr.Code = 0x8004100E // WBEM_E_INVALID_NAMESPACE
	errInvalidClass     winerr.Code = 0x80041010 // WBEM_E_INVALID_CLASS
	errNoProvider       winerr.Code = 0x80041011 // WBEM_E_PROVIDER_NOT_FOUND
	errTransport        winerr.Code = 0x80041015 // WBEM_E_TRANSPORT_FAILURE
	errInvalidMethod    winerr.Code = 0x8004102E // WBEM_E_INVALID_METHOD
	errShuttingDown     winerr.Code = 0x80041033 // WBEM_E_SHUTTING_DOWN
	errServerTooBusy    winerr.Code = 0x80041045 // WBEM_E_SERVER_TOO_BUSY
	errMethodNotThere   winerr.Code = 0x80041055 // WBEM_E_METHOD_NOT_IMPLEMENTED
)

var kinds = map[winerr.Code]winerr.Kind{
	errRPCUnavailable:   winerr.Unavailable,
	errRPCFailed:        winerr.Unavailable,
	errRPCNotExecuted:   winerr.Unavailable,
	errServerDied:       winerr.Unavailable,
	errServerDiedDNE:    winerr.Unavailable,
	errDisconnected:     winerr.Unavailable,
	errTransport:        winerr.Unavailable,
	errShuttingDown:     winerr.Unavailable,
	errServerTooBusy:    winerr.Unavailable,
	errWMIAccessDenied:  winerr.Denied,
	errNotImplemented:   winerr.Unsupported, // a feature of Windows that is not installed
	errClassNotReg:      winerr.Unsupported,
	errClassString:      winerr.Unsupported,
	errWMINotSupported:  winerr.Unsupported,
	errInvalidNamespace: winerr.Unsupported,
	errInvalidClass:     winerr.Unsupported,
	errNoProvider:       winerr.Unsupported,
	errInvalidMethod:    winerr.Unsupported,
	errMethodNotThere:   winerr.Unsupported,
}

// disconnected reports whether a new connection may help: the service was restarted, or
// is about to be.
func (e *Error) disconnected() bool {
	switch e.Code {
	case errRPCUnavailable, errRPCFailed, errRPCNotExecuted, errServerDied, errServerDiedDNE, errDisconnected, errTransport, errShuttingDown:
		return true
	default:
		return false
	}
}

// mayHaveRun reports whether a method that was sent may have run in spite of this failure.
func mayHaveRun(err error) bool {
	return !errors.Is(err, errRPCNotExecuted) && !errors.Is(err, errServerDiedDNE)
}

// Kind is the class of the failure.
func (e *Error) Kind() winerr.Kind {
	if kind, known := kinds[e.Code]; known {
		return kind
	}
	return e.Code.Kind()
}

// Is matches the Kind, its counterpart in the standard library, and the code.
func (e *Error) Is(target error) bool { return target == error(e.Code) || e.Kind().Is(target) }

// As finds the code. It is not unwrapped, because then its class would match as well,
// which may be another one.
func (e *Error) As(target any) bool {
	code, ok := target.(*winerr.Code)
	if ok {
		*code = e.Code
	}
	return ok
}
