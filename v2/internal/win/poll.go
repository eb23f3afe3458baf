package win

import (
	"context"
	"time"
)

// Backoff says how Poll waits: the pauses double from First to Longest and add up to Limit.
type Backoff struct {
	First, Longest, Limit time.Duration
	// Quarter makes the pauses grow more slowly: each is a quarter of the time waited so far. What is awaited is
	// then seen at most a quarter late, after more looks.
	Quarter bool
}

// after returns the pause after the given one, when Poll has waited so long.
func (b Backoff) after(pause, waited time.Duration) time.Duration {
	pause *= 2
	if b.Quarter {
		pause = max(b.First, waited/4)
	}
	return min(pause, b.Longest)
}

// Poll calls try until it is done or fails, and pauses in between. When the pauses add up to
// the limit it gives up: done is false then, and err is nil. It returns ctx's error if ctx ends
// during a pause.
//
// Only pauses count, on the machine's clock; a call that hangs ends with ctx. try learns how
// long Poll has waited so far, for steps that are due only now and then.
func Poll(ctx context.Context, clock Clock, b Backoff, try func(waited time.Duration) (done bool, err error)) (done bool, err error) {
	waited := time.Duration(0)
	for pause := b.First; ; pause = b.after(pause, waited) {
		if done, err = try(waited); done || err != nil || waited >= b.Limit {
			return done, err
		}
		pause = min(pause, b.Limit-waited)
		if err := clock.Sleep(ctx, pause); err != nil {
			return false, err
		}
		waited += pause
	}
}
