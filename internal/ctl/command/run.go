// Package command is csi-proxyctl: its commands, what they print, and how they end.
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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

// name is what the program is called in its own messages.
const name = "csi-proxyctl"

// Exit codes. They are documented in docs/operations.md.
const (
	ExitOK          = 0
	ExitFailure     = 1   // a call has failed
	ExitUsage       = 2   // the command line is wrong
	ExitUnreachable = 3   // nobody answers at an endpoint
	ExitFindings    = 4   // doctor has found something
	ExitInterrupted = 130 // as shells have it for an interrupt
)

// Environment is what the program has from outside.
type Environment struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	// Terminal reports whether the output goes to a terminal that knows colours and can be
	// cleared. One whose TERM is dumb does not.
	Terminal bool
	// Width returns how many characters a line of the terminal has, 0 if that is not known;
	// nil without a terminal.
	Width func() int
	// ReadSecret asks for a secret without showing it; nil if nobody can be asked.
	ReadSecret func(prompt string) (string, error)
	// Services opens the service manager of the machine.
	Services func() (scm.Manager, error)
	// After is time.After, except in tests.
	After func(time.Duration) <-chan time.Time
}

// Run runs the program, and returns its exit code. The end of ctx is an interrupt.
func Run(ctx context.Context, args []string, env Environment) int {
	env.Terminal = env.Terminal && env.Getenv("TERM") != "dumb"
	a := &app{env: env}
	root := a.root() //nolint:contextcheck // commands get it from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	code := a.exitCode(ctx, err)
	if !errors.Is(err, errFindings) { // they have been printed
		fmt.Fprintf(env.Err, "%s: %s\n", name, sentence(ctx, err))
	}
	if code == ExitUsage {
		fmt.Fprintf(env.Err, "Run '%s --help' for how it is used.\n", strings.TrimSpace(a.path()))
	}
	return code
}

// usageError is a mistake in the command line that cobra cannot see.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errFindings ends a doctor that has printed what it found.
var errFindings = errors.New("there are findings")

// timeoutError says that a command has taken longer than --timeout.
type timeoutError struct{ error }

func (e timeoutError) Unwrap() error { return e.error }

func (a *app) exitCode(ctx context.Context, err error) int {
	absent := (*call.VersionError)(nil)
	switch {
	case !a.started, errors.As(err, &usageError{}), errors.As(err, &absent) && absent.Asked:
		return ExitUsage
	case errors.Is(err, errFindings):
		return ExitFindings
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, &timeoutError{}):
		return ExitFailure
	case errors.As(err, new(*endpoint.UnreachableError)), absent != nil:
		return ExitUnreachable
	default:
		return ExitFailure
	}
}

// sentence is an error in one line, with gRPC's code.
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
		return interrupted(text, code)
	case late:
		code = codes.DeadlineExceeded
	}
	text = strings.Join(strings.Fields(text), " ")
	if code != codes.OK {
		text = fmt.Sprintf("%s (%s)", text, code)
	}
	if late {
		text += "; --timeout gives it more time"
	}
	return text
}

// interrupted is what there is to say after an interrupt: at which step it came, what else
// has gone wrong, and whether a call was under way.
func interrupted(text string, code codes.Code) string {
	step, cut := strings.CutSuffix(strings.Join(strings.Fields(text), " "), context.Canceled.Error())
	switch {
	case code == codes.Canceled:
		return step + "interrupted; what was asked for may still be carried out"
	case cut:
		return step + "interrupted"
	case code != codes.OK: // the answer of somebody who was interrupted
		return "interrupted"
	default:
		return "interrupted: " + step
	}
}
