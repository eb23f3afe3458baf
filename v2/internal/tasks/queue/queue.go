// Package queue runs changes of the same object in the order of their arrival, and lets callers
// who want the same change share one run of it. A disk, a volume, the folder where a volume is
// mounted and an iSCSI target are such objects.
//
// A change that has begun goes on when its callers leave. Their retries join it instead of
// starting it twice. A change that has not begun is dropped when its last caller leaves.
//
// Answers to questions are in package shared. No caller joins an answer that has begun, because it can
// lack what the caller has just changed, and it ends with its last caller, because it changes nothing.
package queue

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

// Change names something to do. Callers who ask for equal changes may share one run and its
// result.
type Change interface {
	comparable
	// Objects names what is changed; changes of the same object wait for each other.
	Objects() []string
	// Fresh means that callers can join a run only before it begins.
	Fresh() bool
}

// Queues holds the changes that run or wait, for each object in the order of their arrival. The
// zero value is ready.
//
// A change of two objects stands in both queues at once, and begins when all changes before it
// have ended. A caller joins a change only if it is the last one in all of its queues. So no
// earlier caller undoes what was reported to a later caller: a mount that arrives after an unmount runs
// after it, even if the same mount still runs in front of the unmount.
type Queues[C Change] struct {
	mu       sync.Mutex
	byObject map[string][]*turn[C]
}

type turn[C Change] struct {
	change  C
	objects []string
	done    chan struct{} // closed when it has ended and err is there
	err     error
	quit    chan struct{} // closed to end its wait; nil if nothing was before it

	// Guarded by the mutex of the queues.
	callers int
	begun   bool
}

// errDropped is the result of a change that never began, because all its callers had left. No
// caller sees it: the change has left its queues, so it cannot be joined.
var errDropped = errors.New("dropped: all callers have left")

// maxWait is the deadline of callers who have none. The change goes on without them.
const maxWait = 15 * time.Minute

// Do runs a change in its turn, or joins an equal one, and returns its error. If ctx ends first,
// Do returns ctx's error. The context of the change has the values of the first caller's, but
// ends limit after the change begins: its wait for its turn does not count.
func (q *Queues[C]) Do(ctx context.Context, change C, limit time.Duration, do func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var timeout <-chan time.Time
	if _, bounded := ctx.Deadline(); !bounded {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		timeout = timer.C
	}
	mine := q.enter(ctx, change, limit, do)
	defer q.leave(mine)
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout:
		return context.DeadlineExceeded
	}
}

// Idle reports whether no change of an object runs or waits. A caller that then finds nothing to
// change was before every later change.
func (q *Queues[C]) Idle(object string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.byObject[object]) == 0
}

// enter adds the caller to a change that can be joined, or lines up a new one.
func (q *Queues[C]) enter(ctx context.Context, change C, limit time.Duration, do func(ctx context.Context) error) *turn[C] {
	objects := change.Objects()
	q.mu.Lock()
	defer q.mu.Unlock()
	if last := q.last(change, objects); last != nil {
		last.callers++
		return last
	}
	if q.byObject == nil {
		q.byObject = map[string][]*turn[C]{}
	}
	mine := &turn[C]{change: change, objects: objects, done: make(chan struct{}), callers: 1}
	var before []*turn[C]
	for _, object := range objects {
		before = append(before, q.byObject[object]...)
		q.byObject[object] = append(q.byObject[object], mine)
	}
	if len(before) > 0 {
		mine.quit = make(chan struct{})
	}
	run := func(ctx context.Context) error {
		defer q.remove(mine)
		for _, other := range before {
			if !mine.awaits(other) {
				return errDropped
			}
		}
		if !q.begin(mine) {
			return errDropped
		}
		ctx, cancel := context.WithTimeout(context.WithValue(ctx, awaited{}, func() bool { return q.awaited(mine) }), limit)
		defer cancel()
		return do(ctx)
	}
	go func() {
		defer close(mine.done)
		mine.err = tasks.Recover(context.WithoutCancel(ctx), run) // it outlives its callers
	}()
	return mine
}

type awaited struct{}

// Awaited reports whether a caller still waits for the change whose context ctx is. A change asks before a step that its
// callers would not expect when they have left.
func Awaited(ctx context.Context) bool {
	ask, ok := ctx.Value(awaited{}).(func() bool)
	return !ok || ask()
}

func (q *Queues[C]) awaited(t *turn[C]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.callers > 0
}

// last returns the change that a caller of an equal one can join, or nil.
func (q *Queues[C]) last(change C, objects []string) (last *turn[C]) {
	for _, object := range objects {
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

// awaits waits until another change has ended, with or without an error. It is false if all
// callers leave first.
func (t *turn[C]) awaits(other *turn[C]) bool {
	select {
	case <-other.done:
		return true
	case <-t.quit:
		return false
	}
}

// begin marks a change that still has callers as begun. It is false if all callers have left.
func (q *Queues[C]) begin(t *turn[C]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.begun = t.callers > 0
	return t.begun
}

// leave removes a caller. The last caller drops a change that has not begun: an unmount must not
// happen long after its caller gave up and went on to use the volume.
func (q *Queues[C]) leave(t *turn[C]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.callers--
	if t.callers > 0 || t.begun {
		return
	}
	q.drop(t)
	if t.quit != nil {
		close(t.quit)
	}
}

// remove takes a change that has ended out of its queues.
func (q *Queues[C]) remove(t *turn[C]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(t)
}

func (q *Queues[C]) drop(t *turn[C]) {
	for _, object := range t.objects {
		q.byObject[object] = slices.DeleteFunc(q.byObject[object], func(other *turn[C]) bool { return other == t })
		if len(q.byObject[object]) == 0 {
			delete(q.byObject, object)
		}
	}
}
