package api

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/flight"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// queues are the changes that are under way or wait for their turn, for each volume and
// each folder in the order of their arrival. The zero value is ready.
//
// A change of a volume at a folder stands in both queues at once, and begins when all who
// stood there before it have ended. A caller joins a change only if that is the last one
// in all of its queues. So what a caller was told is never undone by somebody who came
// before: a mount that comes after an unmount is done after it, even if the same mount is
// still under way in front of the unmount.
type queues struct {
	mu   sync.Mutex
	byID map[string][]*turn
}

// turn is a change in its queues.
type turn struct {
	work work
	run  *flight.Work
	quit context.CancelFunc // ends its wait

	// Guarded by the mutex of the queues.
	callers int
	begun   bool
}

// errNobody is the result of a change that did not begin, because all who asked for it had
// left. Nobody gets to see it: such a change is in no queue any more.
var errNobody = errors.New("nobody waits for it")

// do runs a change, or joins it.
func (q *queues) do(ctx context.Context, w work, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := q.enter(ctx, w, do)
	defer q.leave(mine)
	return mine.run.Wait(ctx)
}

// keys names the queues of a change.
func (w work) keys() []string {
	keys := []string{string(w.volume)}
	if w.path != "" {
		keys = append(keys, winpath.Fold(w.path))
	}
	return keys
}

// enter counts the caller in at a change that can be joined, or lines up a new one.
func (q *queues) enter(ctx context.Context, w work, do func(ctx context.Context) error) *turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := q.last(w); last != nil {
		last.callers++
		return last
	}
	if q.byID == nil {
		q.byID = map[string][]*turn{}
	}
	wait, quit := context.WithCancel(context.WithoutCancel(ctx))
	mine := &turn{work: w, quit: quit, callers: 1}
	var before []*turn
	for _, key := range w.keys() {
		before = append(before, q.byID[key]...)
		q.byID[key] = append(q.byID[key], mine)
	}
	mine.run = flight.Start(ctx, workLimit, func(ctx context.Context) error {
		defer q.remove(mine)
		for _, other := range before {
			if err := other.ended(ctx, wait); err != nil {
				return err
			}
		}
		if !q.begin(mine) {
			return errNobody
		}
		return do(ctx)
	})
	return mine
}

// last returns the change that is the last one in all queues of w, if it can be joined.
func (q *queues) last(w work) (last *turn) {
	for _, key := range w.keys() {
		queue := q.byID[key]
		if len(queue) == 0 || (last != nil && last != queue[len(queue)-1]) {
			return nil
		}
		last = queue[len(queue)-1]
	}
	if last.work != w || (w.fresh && last.begun) {
		return nil
	}
	return last
}

// ended waits until a change has ended, however it did, and fails if one of the contexts
// does first.
func (t *turn) ended(ctx, wait context.Context) error {
	select {
	case <-t.run.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-wait.Done():
		return errNobody
	}
}

// begin reports whether anybody still wants the change, which then cannot be called off.
func (q *queues) begin(t *turn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.begun = t.callers > 0
	return t.begun
}

// leave counts a caller out. A change that has not begun leaves with its last caller: an
// unmount must not happen long after its caller has given up on it and gone on to use the
// volume.
func (q *queues) leave(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.callers--
	if t.callers == 0 && !t.begun {
		q.drop(t)
		t.quit()
	}
}

// remove takes a change that ends out of its queues.
func (q *queues) remove(t *turn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(t)
	t.quit()
}

func (q *queues) drop(t *turn) {
	for _, key := range t.work.keys() {
		q.byID[key] = slices.DeleteFunc(q.byID[key], func(other *turn) bool { return other == t })
		if len(q.byID[key]) == 0 {
			delete(q.byID, key)
		}
	}
}
