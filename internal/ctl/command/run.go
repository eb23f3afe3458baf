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
	// Terminal reports whether people read the output.
	Terminal bool
	// ReadSecret asks for a secret without showing it; nil if nobody can be asked.
	ReadSecret func(prompt string) (string, error)
	// Services opens the service manager of the machine.
	Services func() (scm.Manager, error)
	// After is time.After, except in tests.
	After func(time.Duration) <-chan time.Time
}

// Run runs the program, and returns its exit code. The end of ctx is an interrupt.
func Run(ctx context.Context, args []string, env Environment) int {
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

func (a *app) exitCode(ctx context.Context, err error) int {
	switch {
	case !a.started, errors.As(err, &usageError{}), call.Absent(err):
		return ExitUsage
	case errors.Is(err, errFindings):
		return ExitFindings
	case ctx.Err() != nil:
		return ExitInterrupted
	case errors.As(err, new(*endpoint.UnreachableError)):
		return ExitUnreachable
	default:
		return ExitFailure
	}
}

// sentence is an error in one line, with gRPC's code if it has one.
func sentence(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return "interrupted; what was asked for may still be carried out"
	}
	text := err.Error()
	var s interface {
		error
		GRPCStatus() *status.Status
	}
	if errors.As(err, &s) && s.GRPCStatus().Code() != codes.OK {
		message, code := s.GRPCStatus().Message(), s.GRPCStatus().Code()
		text = fmt.Sprintf("%s (%s)", strings.Replace(text, s.Error(), message, 1), code)
		if code == codes.DeadlineExceeded {
			text += "; --timeout gives it more time"
		}
	} else if errors.Is(err, context.DeadlineExceeded) && !errors.As(err, new(*endpoint.UnreachableError)) {
		text += "; --timeout gives it more time"
	}
	return strings.Join(strings.Fields(text), " ")
}
