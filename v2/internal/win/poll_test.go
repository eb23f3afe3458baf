package win_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// fakeClock notes the pauses it was asked for, and ends the wait after some of them.
type fakeClock struct {
	pauses []time.Duration
	endsAt int
}

var errEnded = errors.New("ended")

func (*fakeClock) Now() time.Time { return time.Time{} }

func (*fakeClock) Elapsed() time.Duration { return 0 }

func (c *fakeClock) Sleep(_ context.Context, d time.Duration) error {
	c.pauses = append(c.pauses, d)
	if len(c.pauses) == c.endsAt {
		return errEnded
	}
	return nil
}

func TestPoll(t *testing.T) {
	const ms = time.Millisecond
	backoff := win.Backoff{First: 10 * ms, Longest: 30 * ms, Limit: 100 * ms}
	failure := errors.New("no")
	for name, c := range map[string]struct {
		doneAfter, failAfter time.Duration // of waiting; negative: never
		endsAt               int
		done                 bool
		err                  error
		pauses               []time.Duration
	}{
		"at once":    {doneAfter: 0, failAfter: -1, done: true},
		"later":      {doneAfter: 30 * ms, failAfter: -1, done: true, pauses: []time.Duration{10 * ms, 20 * ms}},
		"never":      {doneAfter: -1, failAfter: -1, pauses: []time.Duration{10 * ms, 20 * ms, 30 * ms, 30 * ms, 10 * ms}},
		"a failure":  {doneAfter: -1, failAfter: 30 * ms, err: failure, pauses: []time.Duration{10 * ms, 20 * ms}},
		"ctx's end":  {doneAfter: -1, failAfter: -1, endsAt: 2, err: errEnded, pauses: []time.Duration{10 * ms, 20 * ms}},
		"just there": {doneAfter: 100 * ms, failAfter: -1, done: true, pauses: []time.Duration{10 * ms, 20 * ms, 30 * ms, 30 * ms, 10 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &fakeClock{endsAt: c.endsAt}
			done, err := win.Poll(t.Context(), clock, backoff, func(waited time.Duration) (bool, error) {
				if c.failAfter >= 0 && waited >= c.failAfter {
					return false, failure
				}
				return c.doneAfter >= 0 && waited >= c.doneAfter, nil
			})
			if done != c.done || !errors.Is(err, c.err) || !slices.Equal(clock.pauses, c.pauses) {
				t.Errorf("%v, %v, pauses %v; want %v, %v, %v", done, err, clock.pauses, c.done, c.err, c.pauses)
			}
		})
	}
}

// TestPoll_Quarter: what is awaited is seen at most a quarter late.
func TestPoll_Quarter(t *testing.T) {
	const ms = time.Millisecond
	clock := &fakeClock{}
	backoff := win.Backoff{First: 20 * ms, Longest: 50 * ms, Limit: 300 * ms, Quarter: true}
	done, err := win.Poll(t.Context(), clock, backoff, func(time.Duration) (bool, error) { return false, nil })
	waited, pauses := time.Duration(0), []time.Duration{}
	for _, pause := range clock.pauses {
		if pause > max(backoff.First, waited/4) {
			t.Errorf("a pause of %s after %s", pause, waited)
		}
		waited += pause
		pauses = append(pauses, pause.Truncate(ms))
	}
	want := []time.Duration{20 * ms, 20 * ms, 20 * ms, 20 * ms, 20 * ms, 25 * ms, 31 * ms, 39 * ms, 48 * ms, 50 * ms, 5 * ms}
	if done || err != nil || waited != backoff.Limit || !slices.Equal(pauses, want) {
		t.Errorf("%v, %v, pauses %v of %s, want %v", done, err, pauses, waited, want)
	}
}
