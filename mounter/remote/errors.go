package remote

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// ErrNoPipe is in the error if a pipe does not exist: the daemon does not run or does not serve the group, or the
// container does not have the pipe.
var ErrNoPipe = errors.New("no such pipe")

// localError is an error that is not the daemon's.
type localError struct {
	class failure.Class
	text  string
	err   error // may be nil
}

// failed has the form: operation object: what is wrong; what to do.
func failed(class failure.Class, op, object, format string, args ...any) *localError {
	return &localError{class: class, text: strings.TrimSpace(op+" "+object) + ": " + fmt.Sprintf(format, args...)}
}

// as returns the error as one that also matches another.
func (e *localError) as(err error) error {
	e.err = err
	return e
}

func (e *localError) Error() string              { return e.text }
func (e *localError) Unwrap() error              { return e.err }
func (e *localError) FailureClass() string       { return e.class.FailureClass() }
func (e *localError) Is(target error) bool       { return e.class.Is(target) }
func (e *localError) GRPCStatus() *status.Status { return status.New(e.class.Code(), e.text) }

// missing is what a daemon may not have.
type missing struct{ op, object, what, remedy string }

func (m missing) err() error {
	return failed(failure.Unsupported, m.op, m.object, "the daemon does not have %s; upgrade it to CSI Proxy v2%s", m.what, m.remedy)
}

const omitOption = ", or omit the option"

func isUnsupported(err error) bool { return failure.ClassOf(err) == failure.Unsupported }
