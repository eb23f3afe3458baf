// Package trial runs the cases of a test suite in a program that is not a test. A case that
// fails, panics or hangs does not end the program.
package trial

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// T is the part of *testing.T that cases use. Fatal and Skip end the case; only its own
// goroutine may call them.
type T interface {
	Helper()
	Name() string
	Context() context.Context
	Cleanup(undo func())
	TempDir() string
	Failed() bool
	Log(args ...any)
	Logf(format string, args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	Skipf(format string, args ...any)
}

// Outcome is how a case ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Result is what came of a case.
type Result struct {
	Outcome Outcome
	// Reason is the first failure, or why the case was skipped.
	Reason string
	// Log is everything that the case said, failures among it.
	Log []string
}

// grace is how long a case may go on after its context has ended.
const grace = 30 * time.Second

// Run runs a case and its cleanups. The context of the case ends after limit, or with ctx. A case
// that still runs 30 seconds later has failed, and goes on without the caller. tempDir is where
// TempDir creates directories.
func Run(ctx context.Context, name, tempDir string, limit time.Duration, do func(T)) Result {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	t := &trial{ctx: ctx, name: name, tempDir: tempDir}
	done := make(chan struct{})
	go func() {
		defer close(done)
		t.protect(func() { do(t) })
		t.undo()
	}()
	hung := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, func() { close(hung) }) })
	defer stop()
	select {
	case <-done:
	case <-hung:
		t.Errorf("%s did not end %s after it was told to", name, grace)
	}
	return t.result()
}

// trial is a case that runs.
type trial struct {
	ctx     context.Context //nolint:containedctx // as testing.T has one
	name    string
	tempDir string

	mu       sync.Mutex
	log      []string
	failure  string
	failed   bool
	skipped  string
	cleanups []func()
}

// protect runs a part of the case on a goroutine of its own, which Fatal ends, and catches panics.
func (t *trial) protect(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if cause := recover(); cause != nil {
				t.Errorf("panic: %v\n%s", cause, debug.Stack())
			}
		}()
		do()
	}()
	<-done
}

// undo runs the cleanups, the last first. Each runs even if another one fails.
func (t *trial) undo() {
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		cleanup := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		t.protect(cleanup)
	}
}

func (t *trial) result() Result {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := Result{Outcome: Passed, Log: slices.Clone(t.log)}
	switch {
	case t.failed:
		r.Outcome, r.Reason = Failed, t.failure
	case t.skipped != "":
		r.Outcome, r.Reason = Skipped, t.skipped
	}
	return r
}

func (t *trial) say(text string, note func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log = append(t.log, strings.TrimRight(text, "\n"))
	if note != nil {
		note()
	}
}

func (t *trial) fail(text string) {
	t.say(text, func() {
		if !t.failed {
			t.failed = true
			t.failure, _, _ = strings.Cut(text, "\n")
		}
	})
}

func (t *trial) skip(text string) {
	t.say(text, func() { t.skipped = text })
	runtime.Goexit()
}

func (t *trial) Helper()                  {}
func (t *trial) Name() string             { return t.name }
func (t *trial) Context() context.Context { return t.ctx }

func (t *trial) Cleanup(undo func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, undo)
}

// TempDir makes a directory that is removed after the case.
func (t *trial) TempDir() string {
	dir, err := os.MkdirTemp(t.tempDir, "case-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("a directory is left behind: %v", err)
		}
	})
	return dir
}

func (t *trial) Failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

func (t *trial) Log(args ...any)                   { t.say(fmt.Sprintln(args...), nil) }
func (t *trial) Logf(format string, args ...any)   { t.say(fmt.Sprintf(format, args...), nil) }
func (t *trial) Error(args ...any)                 { t.fail(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (t *trial) Errorf(format string, args ...any) { t.fail(fmt.Sprintf(format, args...)) }

func (t *trial) Fatal(args ...any) {
	t.Error(args...)
	runtime.Goexit()
}

func (t *trial) Fatalf(format string, args ...any) {
	t.Errorf(format, args...)
	runtime.Goexit()
}

func (t *trial) Skip(args ...any)                 { t.skip(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (t *trial) Skipf(format string, args ...any) { t.skip(fmt.Sprintf(format, args...)) }
