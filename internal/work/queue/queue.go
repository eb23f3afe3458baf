// Package queue puts changes of the same objects in the order of their arrival, and lets
// callers who want the same share one run of it. A volume and the folder where it is to be
// mounted are such objects, and so is an iSCSI target.
//
// A change that has begun goes on when its callers leave, as internal/work/flight does it; one that
// has not begun by then never does.
package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/flight"
)

// Change names something that is to be done. Callers who ask for equal changes may share one
// run of it, and its result.
type Change interface {
	comparable
	// Objects names what is changed; changes of the same object wait for each other.
	Objects() []string
	// Fresh means that only those may share a run who come before it begins.
	Fresh() bool
}

// Queues are the changes that are under way or wait for their turn, for each object in the
// order of their arrival. The zero value is ready.
//
// A change of two objects stands in both queues at once, and begins when all who stood there
// before it have ended. A caller joins a change only if that is the last one in all of its
// queues. So what a caller was told is never undone by somebody who came before: a mount that
// comes after an unmount is done after it, even if the same mount is still under way in front
// of the unmount.
type Queues[C Change] struct {
	mu       sync.Mutex
	byObject map[string][]*turn[C]
}

// turn is a change in its queues.
type turn[C Change] struct {
	change C
	run    *flight.Work
	quit   context.CancelFunc // ends its wait

	// Guarded by the mutex of the queues.
	callers int
	begun   bool
}

// errNobody is the result of a change that did not begin, because all who asked for it had
// left. Nobody gets to see it: such a change is in no queue any more.
var errNobody = errors.New("nobody waits for it")

// Do runs a change when it is its turn, or joins it, and returns its error. When ctx ends
// first Do returns ctx's error. The context of the change has the values of the first caller's,
// but ends only limit after it has begun: what came before it takes its own time.
func (q *Queues[C]) Do(ctx context.Context, change C, limit time.Duration, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	mine := q.enter(ctx, change, limit, do)
	defer q.leave(mine)
	return mine.run.Wait(ctx)
}

// enter counts the caller in at a change that can be joined, or lines up a new one.
func (q *Queues[C]) enter(ctx context.Context, change C, limit time.Duration, do func(ctx context.Context) error) *turn[C] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := q.last(change); last != nil {
		last.callers++
		return last
	}
	if q.byObject == nil {
		q.byObject = map[string][]*turn[C]{}
	}
	wait, quit := context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // leave or remove calls it
	mine := &turn[C]{change: change, quit: quit, callers: 1}
	var before []*turn[C]
	for _, object := range change.Objects() {
		before = append(before, q.byObject[object]...)
		q.byObject[object] = append(q.byObject[object], mine)
	}
	mine.run = flight.Start(ctx, func(ctx context.Context) error {
		defer q.remove(mine)
		for _, other := range before {
			if !other.ended(wait) {
				return errNobody
			}
		}
		if !q.begin(mine) {
			return errNobody
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return do(ctx)
	})
	return mine
}

// last returns the change that is the last one in all queues of an equal one, if it can be
// joined.
func (q *Queues[C]) last(change C) (last *turn[C]) {
	for _, object := range change.Objects() {
		queue := q.byObject[object]
		if len(queue) == 0 || (last != nil && last != queue[len(queue)-1]) {
			return nil
		}
		last = queue[len(queue)-1]
	}
	if last.change != change || (change.Fresh() && last.begun) {
		return nil
	}
	return last
}

// ended waits until a change has ended, however it did, and is false if ctx does first.
func (t *turn[C]) ended(ctx context.Context) bool {
	select {
	case <-t.run.Done():
		return true
	case <-ctx.Done():
		return false
	}
}

// begin reports whether anybody still wants the change, which then cannot be called off.
func (q *Queues[C]) begin(t *turn[C]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.begun = t.callers > 0
	return t.begun
}

// leave counts a caller out. A change that has not begun leaves with its last caller: an
// unmount must not happen long after its caller has given up on it and gone on to use the
// volume.
func (q *Queues[C]) leave(t *turn[C]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.callers--
	if t.callers == 0 && !t.begun {
		q.drop(t)
		t.quit()
	}
}

// remove takes a change that ends out of its queues.
func (q *Queues[C]) remove(t *turn[C]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(t)
	t.quit()
}

func (q *Queues[C]) drop(t *turn[C]) {
	for _, object := range t.change.Objects() {
		q.byObject[object] = slices.DeleteFunc(q.byObject[object], func(other *turn[C]) bool { return other == t })
		if len(q.byObject[object]) == 0 {
			delete(q.byObject, object)
		}
	}
}
