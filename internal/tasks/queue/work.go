package queue

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

// Work runs on its own goroutine. Any number of callers can wait for it.
type Work struct {
	done chan struct{}
	err  error // valid when done is closed
}

// Start runs f on its own goroutine. The context of f has the values of ctx but does not end
// with it, so that the work outlives its caller. A panic in f becomes its error, see tasks.Recover.
func Start(ctx context.Context, f func(ctx context.Context) error) *Work {
	w := &Work{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.err = tasks.Recover(context.WithoutCancel(ctx), f)
	}()
	return w
}

// Done is closed when the work has ended.
func (w *Work) Done() <-chan struct{} { return w.done }

// Wait returns the error of the work, or ctx's error if ctx ends first.
func (w *Work) Wait(ctx context.Context) error {
	select {
	case <-w.done:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
