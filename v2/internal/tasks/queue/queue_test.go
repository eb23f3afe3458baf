package queue_test

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

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// change is of the objects that are letters of its name.
type change struct {
	name  string
	fresh bool
}

func (c change) Objects() []string { return strings.Split(c.name, "") }

func (c change) Fresh() bool { return c.fresh }

// station runs changes that take a minute each, and notes when they begin and end.
type station struct {
	queues queue.Queues[change]
	start  time.Time

	mu  sync.Mutex
	log []string
}

func (s *station) ask(ctx context.Context, c change) error {
	return s.queues.Do(ctx, c, time.Hour, func(context.Context) error {
		s.note(fmt.Sprintf("%s at %v", c.name, time.Since(s.start)))
		time.Sleep(time.Minute)
		return fmt.Errorf("end of %s", c.name)
	})
}

func (s *station) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, line)
}

func (s *station) want(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		t.Errorf("it went %q, want %q", s.log, want)
	}
}

// crowd asks for changes a second apart, and returns when all have their answers.
func (s *station) crowd(t *testing.T, changes ...change) {
	t.Helper()
	s.start = time.Now()
	done := make(chan error, len(changes))
	for _, c := range changes {
		go func() {
			err := s.ask(t.Context(), c)
			if err != nil && err.Error() == "end of "+c.name {
				err = nil
			}
			done <- err
		}()
		time.Sleep(time.Second)
	}
	for range changes {
		require.NoError(t, <-done)
	}
}

func TestQueues_Order(t *testing.T) {
	for name, c := range map[string]struct {
		changes []change
		want    []string
	}{
		"same object":                    {[]change{{"a", false}, {"ab", false}, {"a", false}}, []string{"a at 0s", "ab at 1m0s", "a at 2m0s"}},
		"other objects do not wait":      {[]change{{"a", false}, {"b", false}}, []string{"a at 0s", "b at 1s"}},
		"equal ones share a run":         {[]change{{"ab", false}, {"ab", false}, {"ab", false}}, []string{"ab at 0s"}},
		"equal ones that wait share one": {[]change{{"a", false}, {"ab", false}, {"ab", false}}, []string{"a at 0s", "ab at 1m0s"}},
		"not with one in between":        {[]change{{"a", false}, {"ab", false}, {"b", false}, {"ab", false}}, []string{"a at 0s", "ab at 1m0s", "b at 2m0s", "ab at 3m0s"}},
		"fresh ones share what waits":    {[]change{{"a", true}, {"a", true}, {"a", true}}, []string{"a at 0s", "a at 1m0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &station{}
				s.crowd(t, c.changes...)
				s.want(t, c.want...)
			})
		})
	}
}

func TestQueues_CallersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &station{start: time.Now()}
		leave := func(c change) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.ask(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want the deadline", err)
			}
		}
		leave(change{"a", false})  // has begun, and goes on
		leave(change{"ab", false}) // waits, and never begins
		if err := s.ask(t.Context(), change{"a", false}); err == nil || err.Error() != "end of a" {
			t.Errorf("the retry got %v, want the result of the first", err)
		}
		time.Sleep(time.Hour)
		s.want(t, "a at 0s")

		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.ask(over, change{"a", false}); !errors.Is(err, context.Canceled) {
			t.Errorf("%v for a caller who had left before", err)
		}
		s.want(t, "a at 0s")
	})
}

func TestQueues_Idle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &station{}
		want := func(idle bool) {
			t.Helper()
			if s.queues.Idle("a") != idle || !s.queues.Idle("c") {
				t.Errorf("a is idle: %v, want %v; c is idle: %v", s.queues.Idle("a"), idle, s.queues.Idle("c"))
			}
		}
		want(true)
		done := make(chan error)
		go func() { done <- s.ask(t.Context(), change{name: "ab"}) }()
		synctest.Wait()
		want(false)
		<-done
		want(true)
	})
}

// TestDo_LimitBegins: the time of a change begins with the change, however long it waited for
// those before it.
func TestDo_LimitBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queues queue.Queues[change]
		const limit = time.Minute
		first := make(chan error)
		go func() {
			first <- queues.Do(t.Context(), change{name: "a"}, limit, func(context.Context) error {
				time.Sleep(10 * limit) // it does not look at its context
				return nil
			})
		}()
		synctest.Wait()
		err := queues.Do(t.Context(), change{name: "ab"}, limit, func(ctx context.Context) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) != limit {
				return fmt.Errorf("it has %v left", time.Until(deadline))
			}
			return nil
		})
		require.NoError(t, errors.Join(err, <-first))
	})
}

// TestDo_Panic: a panic is the error of the change, with one line, and the queue goes on.
func TestDo_Panic(t *testing.T) {
	var queues queue.Queues[change]
	var log strings.Builder
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
	err := queues.Do(ctx, change{name: "a"}, time.Hour, func(context.Context) error { panic("oops\ngoroutine 7: another stack") })
	if err == nil || !strings.HasSuffix(err.Error(), "panic: oops") {
		t.Errorf("%v, want the first line of the panic", err)
	}
	if got := log.String(); !strings.Contains(got, "TestDo_Panic") || !strings.Contains(got, "goroutine 7") {
		t.Errorf("the log lacks the stacks:\n%s", got)
	}
	require.NoError(t, queues.Do(ctx, change{name: "a"}, time.Hour, func(context.Context) error { return nil }), "the next change:")
}

// TestDo_LimitEnds: the limit ends a change that looks at its context.
func TestDo_LimitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var queues queue.Queues[change]
		err := queues.Do(t.Context(), change{name: "a"}, time.Minute, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
	})
}

// TestDo_Outlives: a change outlives its caller, a later caller gets its result, and its context has the
// values of the first caller's.
func TestDo_Outlives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		var queues queue.Queues[change]
		result := errors.New("result")
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), time.Second)
		defer cancel()
		do := func(ctx context.Context) error {
			time.Sleep(time.Minute)
			if ctx.Err() != nil || ctx.Value(key{}) != "value" {
				t.Errorf("its context is %v", ctx)
			}
			return result
		}
		if err := queues.Do(ctx, change{name: "a"}, time.Hour, do); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v for the caller who left", err)
		}
		if err := queues.Do(t.Context(), change{name: "a"}, time.Hour, nil); !errors.Is(err, result) {
			t.Errorf("%v, want the result", err)
		}
	})
}
