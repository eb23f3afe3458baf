package failure

import (
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api"
)

// classified is an error that names its class, as errors of the library do.
type classified interface {
	error
	FailureClass() string
}

// coded is an error that has a Windows code; 0 means none.
type coded interface {
	error
	WindowsCode() uint32
}

// withStatus is an error of a gRPC call.
type withStatus interface {
	error
	GRPCStatus() *status.Status
}

// ClassOf returns the class of an error of the library, of the daemon's API, or of the standard
// library. It looks at what err wraps; the outermost class counts. nil has the class None,
// and an error that says nothing has Internal.
func ClassOf(err error) Class {
	if err == nil {
		return None
	}
	if known := classified(nil); errors.As(err, &known) {
		return classNamed(known.FailureClass())
	}
	if s, ok := statusOf(err); ok {
		return classOfCode(s.Code())
	}
	for _, class := range Classes() {
		if standard := class.known().standard; standard != nil && errors.Is(err, standard) {
			return class
		}
	}
	return Internal
}

// Code returns the code with which a CSI driver answers err: that of its class.
func Code(err error) codes.Code { return ClassOf(err).Code() }

// Message returns the sentence of err without what gRPC puts around that of a status.
func Message(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if carrier := withStatus(nil); errors.As(err, &carrier) {
		text = strings.Replace(text, carrier.Error(), carrier.GRPCStatus().Message(), 1)
	}
	return text
}

// WindowsCode returns the code with which Windows failed: a Win32 error code, such as 32 for
// ERROR_SHARING_VIOLATION, or an HRESULT. Many errors have none, for instance a path that is
// refused before Windows sees it. Methods of WMI classes have numbers of their own, which are
// only in the text.
func WindowsCode(err error) (code uint32, ok bool) {
	if known := coded(nil); errors.As(err, &known) {
		code = known.WindowsCode()
		return code, code != 0
	}
	if s, ok := statusOf(err); ok {
		code = detailOf(s)
	}
	return code, code != 0
}

// FromStatus returns an error that says the same as err, and matches its class and the standard
// library's counterpart with errors.Is. The typed clients return such errors already. status.Code
// and status.FromError read the result as they read err. Errors that are not the status of a
// call, and nil, are returned unchanged.
func FromStatus(err error) error {
	if known := classified(nil); err == nil || errors.As(err, &known) {
		return err
	}
	s, ok := statusOf(err)
	if !ok {
		return err
	}
	return &statusError{err, s, classOfCode(s.Code())}
}

type statusError struct {
	err    error
	status *status.Status
	class  Class
}

func (e *statusError) Error() string              { return e.err.Error() }
func (e *statusError) Unwrap() error              { return e.err }
func (e *statusError) GRPCStatus() *status.Status { return e.status }
func (e *statusError) FailureClass() string       { return e.class.FailureClass() }
func (e *statusError) WindowsCode() uint32        { return detailOf(e.status) }
func (e *statusError) Is(target error) bool       { return e.class.Is(target) }

// statusOf finds a status in err. It does not invent one for other errors, as status.Convert
// does.
func statusOf(err error) (*status.Status, bool) {
	if carrier := withStatus(nil); !errors.As(err, &carrier) {
		return nil, false
	}
	return status.FromError(err)
}

// detailOf returns the Windows code among the details of a status, or 0.
func detailOf(s *status.Status) uint32 {
	for _, detail := range s.Details() {
		if windows, ok := detail.(*api.WindowsError); ok {
			return windows.GetCode()
		}
	}
	return 0
}

// classOfCode returns the class whose code is code. The daemon sends only such codes; gRPC and
// proxies between may send the others.
func classOfCode(code codes.Code) Class {
	switch code {
	case codes.Unauthenticated:
		return Denied
	case codes.OutOfRange:
		return Invalid
	default:
	}
	for _, class := range Classes() {
		if class.Code() == code {
			return class
		}
	}
	return Internal
}

func classNamed(name string) Class {
	for _, class := range Classes() {
		if class.FailureClass() == name {
			return class
		}
	}
	return Internal
}
