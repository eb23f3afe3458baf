// Package command implements the commands of csi-proxyctl.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/live"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
)

const name = "csi-proxyctl"

// Exit codes, documented in docs/cli/README.md.
const (
	ExitOK          = 0
	ExitFailure     = 1   // a call failed
	ExitUsage       = 2   // the command line is invalid
	ExitUnreachable = 3   // an endpoint does not answer
	ExitProblems    = 4   // doctor, or node --exit-code, found a problem
	ExitInterrupted = 130 // the shells' code for SIGINT
)

// Environment is the outside world of the program.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether the output is a terminal that can show colours and be cleared.
	// TERM=dumb turns it off.
	Terminal bool
	// CanAsk says that standard input is a terminal, so that the user can answer a question.
	CanAsk bool
	// ErrTerminal says that standard error is a terminal.
	ErrTerminal bool
	// Width and ErrWidth return the width of the terminal in characters, 0 if unknown; nil without
	// a terminal.
	Width, ErrWidth func() int
	// ReadSecret prompts for a secret without echo; nil if standard input is not a terminal.
	ReadSecret func(prompt string) (string, error)
	// Host is the name of the machine; empty if it is unknown.
	Host string
	// Services opens the service manager of the machine.
	Services func() (scm.Manager, error)
	// After is time.After, except in tests.
	After func(time.Duration) <-chan time.Time
	// Now is time.Now, except in tests; nil means time.Now.
	Now func() time.Time
}

// Run runs the program and returns its exit code. Canceling ctx is an interrupt.
func Run(ctx context.Context, args []string, env Environment) int {
	env.Terminal = env.Terminal && env.Getenv("TERM") != "dumb"
	if env.Now == nil {
		env.Now = time.Now
	}
	a := &app{env: env}
	if env.ErrTerminal && env.After != nil && env.Getenv("TERM") != "dumb" {
		a.meter = &meter{err: env.Err, now: env.Now, after: env.After, width: env.ErrWidth}
		a.env.Err = a.meter.before(env.Err)
	}
	root := a.root() //nolint:contextcheck // commands get it from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	code := a.exitCode(ctx, err)
	if !errors.Is(err, errProblems) { // already printed
		fmt.Fprintf(env.Err, "%s: %s\n", name, sentence(ctx, err))
	}
	if code == ExitUsage {
		fmt.Fprintf(env.Err, "Run '%s --help' for usage.\n", strings.TrimSpace(a.path()))
	}
	return code
}

// usageError is an invalid command line that cobra does not detect.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errProblems ends a command after it has printed problems.
var errProblems = errors.New("there are problems")

type timeoutError struct{ error }

func (e timeoutError) Unwrap() error { return e.error }

func (a *app) exitCode(ctx context.Context, err error) int {
	switch {
	case !a.started, errors.As(err, &usageError{}):
		return ExitUsage
	case errors.Is(err, errProblems):
		return ExitProblems
	case ctx.Err() != nil, errors.Is(err, live.ErrInterrupted):
		return ExitInterrupted
	case errors.As(err, &timeoutError{}):
		return ExitFailure
	case errors.As(err, new(*endpoint.UnreachableError)):
		return ExitUnreachable
	default:
		return ExitFailure
	}
}

// sentence returns an error as one line with its gRPC code.
func sentence(ctx context.Context, err error) string {
	text, code := err.Error(), codes.OK
	if s, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err); ok {
		code = s.GRPCStatus().Code()
		text = strings.Replace(text, s.Error(), s.GRPCStatus().Message(), 1)
	}
	if errors.As(err, new(*endpoint.UnreachableError)) {
		code = codes.Unavailable
	}
	late := errors.As(err, &timeoutError{})
	switch {
	case ctx.Err() != nil:
		return interrupted(text, code, errors.As(err, new(*call.UnfinishedError)))
	case late:
		code = codes.DeadlineExceeded
	}
	text = strings.Join(strings.Fields(text), " ")
	if code != codes.OK {
		text = fmt.Sprintf("%s (%s)", text, code)
	}
	if late {
		text += "; run 'csi-proxyctl node' to see what does not answer, or increase --timeout"
	}
	return text
}

// interrupted describes an interrupt: the step, other failures, and whether a change may
// still happen.
func interrupted(text string, code codes.Code, unfinished bool) string {
	step, cut := strings.CutSuffix(strings.Join(strings.Fields(text), " "), context.Canceled.Error())
	switch {
	case unfinished:
		return step + "interrupted; the server may still complete the change"
	case cut, code == codes.Canceled:
		return step + "interrupted"
	case code != codes.OK: // a consequence of the interrupt
		return "interrupted"
	default:
		return "interrupted: " + step
	}
}
