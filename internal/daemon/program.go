package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// Exit codes of the programs.
const (
	ExitOK      = 0
	ExitFailure = 1 // it could not start, or an endpoint failed
	ExitUsage   = 2 // the command line is wrong
)

// Program is a command that serves the API in the foreground.
type Program struct {
	Name    string
	Summary string // what stands above the flags in -help

	// Register adds the program's own flags to those all have in common.
	Register func(*flag.FlagSet)
	// Serve runs until ctx ends. A UsageError is about the command line.
	Serve func(ctx context.Context, flags *Flags) error
}

// UsageError is a mistake on the command line.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Main runs the program with a command line, until it is done or the console
// interrupts it, and returns its exit code. It never panics and never exits.
func (p Program) Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the root of all contexts
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	defer klog.Flush()

	var flags Flags
	set := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are reported here, once
	set.Usage = func() {}
	flags.Register(set)
	p.Register(set)
	registerLogFlags(set)

	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		p.usage(stdout, set)
		return ExitOK
	case err == nil && set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: there are only flags", set.Arg(0))
	case err == nil:
		err = flags.Check()
	}
	if err != nil {
		return p.fail(stderr, UsageError{err})
	}
	if flags.Version {
		fmt.Fprintf(stdout, "%s %s\n", p.Name, version.String())
		return ExitOK
	}
	if err := p.Serve(ctx, &flags); err != nil {
		return p.fail(stderr, err)
	}
	return ExitOK
}

// fail reports an error in one line and chooses the exit code.
func (p Program) fail(stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "%s: %v\n", p.Name, err)
	if errors.As(err, &UsageError{}) {
		fmt.Fprintf(stderr, "Run '%s -help' for the flags.\n", p.Name)
		return ExitUsage
	}
	return ExitFailure
}

func (p Program) usage(w io.Writer, set *flag.FlagSet) {
	fmt.Fprintf(w, "%s\n\nUsage: %s [flags]\n\nFlags (with one dash or two):\n", p.Summary, p.Name)
	set.SetOutput(w)
	set.PrintDefaults()
}

// registerLogFlags adds klog's flags under their published names.
func registerLogFlags(set *flag.FlagSet) {
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	klogFlags.VisitAll(func(f *flag.Flag) { set.Var(f.Value, f.Name, f.Usage) })
}
