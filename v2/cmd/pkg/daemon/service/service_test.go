package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeManager notes what it gets.
type fakeManager struct {
	mu  sync.Mutex
	got []string
}

func (m *fakeManager) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, fmt.Sprintf(format, args...))
}

func (m *fakeManager) all() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.got)
}

func (m *fakeManager) report(s Status) {
	m.note("%s %d %v", map[State]string{StartPending: "starting", Running: "running", StopPending: "stopping"}[s.State], s.CheckPoint, s.WaitHint)
}
func (m *fakeManager) info(id uint32, text string) { m.note("event %d: %s", id, text) }
func (m *fakeManager) warn(id uint32, text string) { m.note("warning %d: %s", id, text) }
func (m *fakeManager) fail(id uint32, text string) { m.note("error %d: %s", id, text) }

var errBroken = errors.New("it is broken")

// start runs a service in the bubble of a test. The channel returns its
// exit code.
func start(m manager, requests <-chan Request, serve func(context.Context, Notify) error) <-chan uint32 {
	code := make(chan uint32, 1)
	go func() {
		code <- Service{
			Name:        "x v1",
			Serve:       serve,
			Failed:      func(error) uint32 { return 7 },
			StopTimeout: 20 * time.Second,
		}.run(m, requests)
	}()
	return code
}

// stopped is what a service does that serves and stops at once.
func stopped(ctx context.Context, notify Notify) error {
	notify.Ready()
	<-ctx.Done()
	return nil
}

// check compares the exit code, and everything the manager got.
func check(t *testing.T, m *fakeManager, code <-chan uint32, wantCode uint32, want ...string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-code:
		if got != wantCode {
			t.Errorf("exit code %d, want %d", got, wantCode)
		}
	default:
		t.Error("the service has not stopped")
	}
	if got := m.all(); !slices.Equal(got, want) {
		t.Errorf("the manager got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRun_StartsAndStops(t *testing.T) {
	for _, request := range []Request{Stop, Shutdown} {
		synctest.Test(t, func(t *testing.T) {
			m, requests := &fakeManager{}, make(chan Request)
			code := start(m, requests, func(ctx context.Context, notify Notify) error {
				notify.Progress()
				notify.Progress()
				notify.Ready()
				<-ctx.Done()
				time.Sleep(2500 * time.Millisecond) // calls in flight
				return nil
			})
			synctest.Wait()
			requests <- request
			time.Sleep(5 * time.Second)
			check(
				t, m, code, 0,
				"starting 1 10s", "starting 2 10s", "starting 3 10s",
				"running 0 0s", "event 1: x v1 has started.",
				"stopping 1 25s", "stopping 2 24s", "stopping 3 23s",
				"event 2: x v1 has stopped.",
			)
		})
	}
}

func TestRun_StopTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, requests := &fakeManager{}, make(chan Request)
		release := make(chan struct{})
		code := start(m, requests, func(ctx context.Context, notify Notify) error {
			notify.Ready()
			<-ctx.Done()
			<-release
			return nil
		})
		synctest.Wait()
		requests <- Stop
		requests <- Shutdown
		requests <- Interrogate
		close(release)
		check(
			t, m, code, 0,
			"starting 1 10s", "running 0 0s", "event 1: x v1 has started.",
			"stopping 1 25s", "stopping 1 25s", "stopping 1 25s",
			"event 2: x v1 has stopped.",
		)
	})
}

func TestRun_StopWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, requests := &fakeManager{}, make(chan Request)
		code := start(m, requests, func(ctx context.Context, notify Notify) error {
			<-ctx.Done()
			notify.Progress() // what comes too late is ignored
			notify.Ready()
			return fmt.Errorf("listen: %w", ctx.Err())
		})
		synctest.Wait()
		requests <- Shutdown
		check(t, m, code, 0, "starting 1 10s", "stopping 1 25s", "event 2: x v1 has stopped.")
	})
}

func TestRun_Interrogate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, requests := &fakeManager{}, make(chan Request)
		code := start(m, requests, stopped)
		synctest.Wait()
		requests <- Interrogate
		requests <- Request(2)  // pause, which is not accepted
		requests <- Request(15) // Preshutdown, neither: it serves on
		requests <- Stop
		check(
			t, m, code, 0,
			"starting 1 10s", "running 0 0s", "event 1: x v1 has started.",
			"running 0 0s", "stopping 1 25s", "event 2: x v1 has stopped.",
		)
	})
}

func TestRun_Fails(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(context.Context, Notify) error
		want  []string
	}{
		"at the start": {
			func(_ context.Context, notify Notify) error {
				notify.Progress()
				return errBroken
			},
			[]string{"starting 1 10s", "starting 2 10s", "error 3: x v1 could not start: it is broken"},
		},
		"later": {
			func(_ context.Context, notify Notify) error {
				notify.Ready()
				return errBroken
			},
			[]string{"starting 1 10s", "running 0 0s", "event 1: x v1 has started.", "error 3: x v1 failed: it is broken"},
		},
		"for no reason": {
			func(_ context.Context, notify Notify) error {
				notify.Ready()
				return nil
			},
			[]string{"starting 1 10s", "running 0 0s", "event 1: x v1 has started.", "error 3: x v1 failed: it ended without a stop request"},
		},
		"with a warning before": {
			func(_ context.Context, notify Notify) error {
				notify.Warn("no log")
				return errBroken
			},
			[]string{"starting 1 10s", "warning 4: no log", "error 3: x v1 could not start: it is broken"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeManager{}
				check(t, m, start(m, nil, c.serve), 7, c.want...)
			})
		})
	}
}

func TestRun_FailsWhileStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, requests := &fakeManager{}, make(chan Request)
		code := start(m, requests, func(ctx context.Context, notify Notify) error {
			notify.Ready()
			<-ctx.Done()
			return errBroken
		})
		synctest.Wait()
		requests <- Stop
		check(
			t, m, code, 7,
			"starting 1 10s", "running 0 0s", "event 1: x v1 has started.",
			"stopping 1 25s", "error 3: x v1 failed: it is broken",
		)
	})
}

func TestRun_Panics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &fakeManager{}
		code := start(m, nil, func(context.Context, Notify) error { panic("on purpose") })
		synctest.Wait()
		if got := <-code; got != 7 {
			t.Errorf("exit code %d, want 7", got)
		}
		last := m.all()[len(m.all())-1]
		if last != "error 3: x v1 could not start: internal error; see the csi-proxy log: panic: on purpose" {
			t.Errorf("the event is %q, want the panic", last)
		}
	})
}

// TestRun_NeverStops: the service stops even if a call to Windows does not return.
func TestRun_NeverStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, requests, release := &fakeManager{}, make(chan Request), make(chan struct{})
		code := start(m, requests, func(_ context.Context, notify Notify) error {
			notify.Ready()
			<-release
			notify.Progress() // after the end
			return nil
		})
		synctest.Wait()
		requests <- Stop
		before := time.Now()
		if got, took := <-code, time.Since(before); got != 7 || took != 25*time.Second {
			t.Errorf("exit code %d after %v, want 7 after 25s", got, took)
		}
		all := m.all()
		if last := all[len(all)-1]; last != "error 3: x v1 failed: it did not stop within 25s" {
			t.Errorf("last it said %q", last)
		}
		if !slices.Contains(all, "stopping 25 1s") {
			t.Errorf("it did not say that the stop goes on: %q", all)
		}
		close(release)
	})
}
