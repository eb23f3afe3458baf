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
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

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
func run(ctx context.Context, tests func() int, args []string) (code int, failed error) {
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
		return cleanUp(ctx, o)
	}
	if err := o.choose(); err != nil {
		return exitRefused, err
	}
	if answers, err = openAnswers(o); err != nil {
		return exitRefused, err
	}
	defer answers.close()
	if !o.emulator {
		if !o.afterRestart {
			fmt.Print(o.plan())
		}
		closeMachine, err := o.open(ctx)
		if err != nil {
			answers.discard(o)
			return exitRefused, err
		}
		defer func() {
			if failure := closeMachine(); failure != nil {
				code, failed = 1, fmt.Errorf("%w; run: csi-proxy-verify -cleanup -dir %s", failure, o.dir)
			} else if this.stopped.Load() {
				fmt.Println("What was made is removed. The answers so far are kept.")
			}
		}()
	}
	answers.write(line{Machine: this.about, Program: version.String()})
	return interruptible(ctx, tests), nil
}

// interruptible runs the tests until ctx ends. From then on they can make nothing more, and those that begin are
// skipped. If one hangs, it is not waited for.
func interruptible(ctx context.Context, tests func() int) int {
	ended := make(chan int, 1)
	go func() { ended <- tests() }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	fmt.Println("Interrupted. Please wait until everything is removed.")
	this.stop()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
	}
	return 1
}

// cleanUp removes what a killed run has left.
func cleanUp(ctx context.Context, o options) (code int, err error) {
	if _, err := os.Lstat(filepath.Join(o.dir, journalName)); errors.Is(err, fs.ErrNotExist) {
		fmt.Printf("%s has no %s: no run has left anything there.\n", o.dir, journalName)
		return 0, nil
	}
	j, err := o.sweep(ctx)
	if err != nil {
		return exitRefused, err
	}
	left := j.find(diskKind)
	if err := j.close(); err != nil {
		return exitRefused, err
	}
	if len(left) > 0 {
		return exitRefused, fmt.Errorf("%v is left; see above", left)
	}
	fmt.Printf("Nothing is left in %s.\n", o.dir)
	return 0, nil
}
