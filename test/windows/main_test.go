// Package windows_test asks a Windows machine what only Windows can tell. It runs the conformance suite and the
// tests of the code that calls Windows on it as well. 'make build' compiles it to csi-proxy-verify.exe. On other
// systems, and with -emulator, the same tests ask the emulated node of pkg/winsim.
//
// A question is a subtest with an ID such as Q-msr, which never gets another meaning. The comment above it is its
// text. What it finds out are the facts that it adds to answers.jsonl. What no program can ask yet is a line
// of later.txt and a skipped subtest.
package windows_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// exitRefused is the exit code for a wrong command line, or a machine, folder, disk or share that cannot be used.
const exitRefused = 2

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && runService(m, os.Args[1:]) {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m.Run, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "csi-proxy-verify:", err)
	}
	os.Exit(code)
}

// run asks the machine that the arguments name. It returns the exit code.
func run(ctx context.Context, tests func() int, args []string) (code int, err error) {
	o, err := parse(flag.CommandLine, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Print(help)
		return 0, nil
	case err != nil:
		return exitRefused, err
	case o.emulator:
		if this, err = emulated(); err != nil {
			return exitRefused, err
		}
	case o.cleanup:
		return clean(ctx, o)
	default:
		fmt.Print(o.plan())
		closeMachine, err := o.open(ctx)
		if err != nil {
			return exitRefused, err
		}
		defer func() {
			if closed := closeMachine(); closed != nil {
				code, err = 1, fmt.Errorf("%w; run: csi-proxy-verify -cleanup -dir %s", closed, o.dir)
			}
		}()
	}
	if err := o.choose(); err != nil {
		return exitRefused, err
	}
	if answers, err = openAnswers(o); err != nil {
		return exitRefused, err
	}
	defer answers.close()
	answers.write(line{Machine: this.about, Program: version.String()})
	return interruptible(ctx, tests), nil
}

// interruptible runs the tests until ctx ends. What they have made is removed then: from now on they can make
// nothing more, so the one that runs need not be waited for.
func interruptible(ctx context.Context, tests func() int) int {
	ended := make(chan int, 1)
	go func() { ended <- tests() }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
		fmt.Println("Interrupted. What was made is removed; the answers so far are kept.")
		this.stopped.Store(true)
		return 1
	}
}

// clean removes what a killed run has left.
func clean(ctx context.Context, o options) (code int, err error) {
	left, err := o.sweep(ctx)
	if err == nil {
		err = left.close()
	}
	if err != nil {
		return exitRefused, err
	}
	fmt.Printf("Nothing is left in %s.\n", o.dir)
	return 0, nil
}
