package daemon

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Exit codes of the programs. A Windows service fails with the same code as its service-specific
// exit code.
const (
	ExitOK      = 0
	ExitFailure = 1 // the start or an endpoint failed
	ExitUsage   = 2 // the command line is wrong
	ExitTaken   = 3 // another process has one of the endpoints
)

// Program is a command that serves the API, in a console or as a Windows service.
type Program struct {
	Name    string
	Summary string // printed above the flags by -help

	// Register adds the program's own flags to the common ones.
	Register func(*flag.FlagSet)
	// Common names the flags that -help shows. -help-all shows all.
	Common []string
	// Refuse returns an error if the program cannot run on this system; it may be nil.
	Refuse func() error
	// Facts returns keys and values about the machine for the first line of the log; it may be
	// nil.
	Facts func() []any
	// Serve runs until ctx ends. It returns a UsageError if the command line is wrong.
	Serve func(ctx context.Context, flags *Flags, notify service.Notify) error
	// RunService is service.Run if the program can be a Windows service; otherwise it is nil.
	RunService func(service.Service) (exitCode uint32, err error)
}

// serviceFlag makes the program a Windows service. The program does not ask
// svc.IsWindowsService, which is wrong under Wine.
const serviceFlag = "windows-service"

// UsageError is an error of the command line.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }
func (e UsageError) Unwrap() error { return e.Err }

// Main runs the program until it is done, the console interrupts it or the service manager stops
// it, and returns the exit code. It never panics and never exits.
func (p Program) Main(args []string, stdout, stderr io.Writer) (code int) {
	e := execution{Program: p, args: args, stdout: stdout, stderr: stderr}
	defer e.logs.close()
	err := tasks.Recover(context.Background(), func(ctx context.Context) error { //nolint:forbidigo // the root of all contexts
		code = e.main(ctx)
		return nil
	})
	if err != nil {
		return e.fail(err)
	}
	return code
}

type execution struct {
	Program
	args           []string
	stdout, stderr io.Writer

	flags   Flags
	service bool
	helpAll bool
	logs    logs
}

func (e *execution) main(ctx context.Context) int {
	if err := cmp.Or(fillStreams(), systemLibrariesOnly()); err != nil {
		return e.fail(err)
	}
	set, err := e.parse()
	switch {
	case errors.Is(err, flag.ErrHelp):
		e.usage(set, false)
		return ExitOK
	case err != nil: // handled below, because a service must tell the service manager
	case e.helpAll:
		e.usage(set, true)
		return ExitOK
	case e.flags.Version:
		fmt.Fprintf(e.stdout, "%s %s\n", e.Name, version.Full())
		return ExitOK
	case e.Refuse != nil:
		if err := e.Refuse(); err != nil {
			return e.fail(err)
		}
	}
	work := func(ctx context.Context, notify service.Notify) error {
		e.logs.open(e.stderr, notify.Warn)
		if err != nil {
			return UsageError{err}
		}
		defer e.catchCrash(ctx, notify.Warn)()
		return e.serve(ctx, notify)
	}
	if e.service {
		return e.runService(work)
	}
	return e.runConsole(ctx, work)
}

func (e *execution) parse() (*flag.FlagSet, error) {
	set := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are reported by fail, once
	set.Usage = func() {}
	e.flags.Register(set)
	e.Register(set)
	e.logs.register(set)
	set.BoolVar(&e.helpAll, helpAllFlag, false, "show all flags and exit")
	if e.RunService != nil {
		set.BoolVar(&e.service, serviceFlag, false, "run as a Windows service; the service can have any name")
	}
	if err := set.Parse(e.args); err != nil {
		// Flags after the wrong one are not parsed, but these matter.
		e.service = e.RunService != nil && slices.ContainsFunc(e.args, isServiceFlag)
		e.logs.salvage(e.args)
		return set, err
	}
	if set.NArg() > 0 {
		return set, fmt.Errorf("unexpected argument %q; only flags are allowed", set.Arg(0))
	}
	return set, cmp.Or(e.flags.Check(), e.logs.check())
}

func isServiceFlag(arg string) bool {
	name, value, hasValue := cutFlag(arg)
	on, err := strconv.ParseBool(value)
	return name == serviceFlag && (!hasValue || on && err == nil)
}

// cutFlag splits an argument such as -name=value; the name is empty if arg is not a flag.
func cutFlag(arg string) (name, value string, hasValue bool) {
	flag, ok := strings.CutPrefix(arg, "-")
	if !ok {
		return "", "", false
	}
	return strings.Cut(strings.TrimPrefix(flag, "-"), "=")
}

// runConsole runs until an interrupt, or the end of the session.
func (e *execution) runConsole(ctx context.Context, work func(context.Context, service.Notify) error) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	err := work(ctx, service.Notify{
		Progress: func() {},
		Ready:    func() {},
		Warn:     func(text string) { fmt.Fprintf(e.stderr, "%s: %s\n", e.Name, text) },
		Storage:  func(bool, string) {}, // the log has it
	})
	if err != nil {
		return e.fail(err)
	}
	return ExitOK
}

func (e *execution) runService(work func(context.Context, service.Notify) error) int {
	code, err := e.RunService(service.Service{
		Name:        e.Name + " " + version.String(),
		StopTimeout: e.flags.StopTimeout,
		Failed:      func(err error) uint32 { return uint32(e.fail(err)) },
		Serve: func(ctx context.Context, notify service.Notify) error {
			if e.logs.toStderr() {
				notify.Warn("No log is written, because a service has no standard error. Set -log_file and -logtostderr=false.")
			}
			return work(ctx, notify)
		},
	})
	if errors.Is(err, service.ErrNotStarted) {
		err = UsageError{fmt.Errorf("-%s: %w; omit the flag to run in a console", serviceFlag, err)}
	}
	if err != nil {
		return e.fail(err)
	}
	return int(code)
}

// serve writes the first line of the log and runs the program.
func (e *execution) serve(ctx context.Context, notify service.Notify) error {
	values := []any{"program", e.Name, "version", version.String(), "pid", os.Getpid(), "service", e.service, "args", e.args}
	if e.Facts != nil {
		values = append(values, e.Facts()...)
	}
	klog.FromContext(ctx).Info("Starting", values...)
	if limits, err := policy.NewUnsafe(e.flags.AllowedDirs()); err == nil && e.flags.UnsafeDirs && limits.Unsafe() != nil {
		text := "Requests can change and remove folders that Windows, programs or users need: " + strings.Join(limits.Unsafe(), ", ") + ". Remove -allow-unsafe-working-dirs."
		klog.FromContext(ctx).Info(text)
		notify.Warn(text)
	}
	debug.SetMemoryLimit(int64(e.flags.MemoryLimit))
	reclaiming, enough := context.WithCancel(ctx)
	defer enough()
	go reclaim(reclaiming)
	if err := e.Serve(ctx, &e.flags, notify); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Stopped")
	return nil
}

// fail reports an error in one line, also to the log file if there is one, and returns the exit
// code.
func (e *execution) fail(err error) int {
	if e.logs.file != nil {
		klog.ErrorS(err, "Failed")
	}
	fmt.Fprintf(e.stderr, "%s: %v\n", e.Name, err)
	switch {
	case errors.As(err, &UsageError{}):
		fmt.Fprintf(e.stderr, "Run '%s -help' for the flags.\n", e.Name)
		return ExitUsage
	case errors.Is(err, winerr.Exists):
		return ExitTaken
	default:
		return ExitFailure
	}
}
