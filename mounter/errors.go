package mounter

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/api"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// nodeError is every error of the kit. It is the same in both modes: a sentence, a class for package
// failure and errors.Is, the Windows code if there is one, and a gRPC status with the details of the daemon, so that
// the server of a driver can return it as it is. If disks cannot be distinguished, it wraps a *node.AmbiguousError.
type nodeError struct {
	class failure.Class
	code  uint32 // of Windows; 0 if there is none
	text  string
	err   error // may be nil
}

// newError has the form: operation object: what is wrong; what to do.
func newError(class failure.Class, op, object, format string, args ...any) error {
	return &nodeError{class: class, text: prefix(op, object) + fmt.Sprintf(format, args...)}
}

// during says at which verb and path an error occurred.
func during(op, object string, err error) error {
	if err == nil {
		return nil
	}
	code, _ := failure.WindowsCode(err)
	text := failure.Message(err)
	if errors.Is(err, context.Canceled) {
		text = context.Canceled.Error() // the daemon's answer does not arrive, so only the library knows more
	}
	return &nodeError{class: failure.ClassOf(err), code: code, text: prefix(op, object) + text, err: err}
}

// duringAt is during for a volume that should be at a path. At one that no volume can have it is not found, as CSI says.
func duringAt(op, path string, err error) error {
	if err = during(op, path, err); failure.ClassOf(err) == failure.Invalid && path != "" {
		return &nodeError{class: failure.NotFound, text: err.Error()}
	}
	return err
}

func prefix(op, object string) string { return strings.TrimSpace(op+" "+object) + ": " }

func (e *nodeError) Error() string        { return e.text }
func (e *nodeError) Unwrap() error        { return e.err }
func (e *nodeError) FailureClass() string { return e.class.FailureClass() }
func (e *nodeError) WindowsCode() uint32  { return e.code }
func (e *nodeError) Is(target error) bool { return e.class.Is(target) }

func (e *nodeError) GRPCStatus() *status.Status {
	s := status.New(e.class.Code(), e.text)
	if e.code == 0 {
		return s
	}
	detailed, err := s.WithDetails(&api.WindowsError{Code: e.code})
	if err != nil {
		return s
	}
	return detailed
}

func isUnimplemented(err error) bool { return failure.ClassOf(err) == failure.Unsupported }
