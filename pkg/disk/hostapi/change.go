package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/flight"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/keylock"
)

// changeLimit ends a change that nobody waits for any more. It is longer than all waits of
// the longest one together.
const changeLimit = 2 * time.Minute

// changes are what is being done to disks.
type changes struct {
	locks   keylock.Locks[uint32] // by disk number
	flights flight.Group[change]

	mu      sync.Mutex
	callers map[change]int // who wait for it to begin or end
}

// change is something that is done to a disk.
type change struct {
	op   string
	disk uint32
}

// errNobody is the result of a change that did not begin, because all who asked for it had
// left. Whoever comes before that is known asks again.
var errNobody = errors.New("nobody waits for it")

// change does something to a disk while nobody else does anything to it, and only once for
// all who ask for it at the same time. What has begun is carried through, even if everybody
// leaves: a disk is not left half done, and a retry joins the work instead of starting it
// again. What has not begun by then never does: a disk must not go offline long after
// its user has given up on that and mounted it again.
func (h *host) change(ctx context.Context, op string, disk uint32, do func(context.Context, uint32) error) error {
	what := change{op, disk}
	defer h.changes.arrive(what)()
	for {
		err := h.changes.flights.Do(ctx, what, changeLimit, func(ctx context.Context) error {
			unlock, err := h.changes.locks.Lock(ctx, disk)
			if err != nil {
				return err
			}
			defer unlock()
			if !h.changes.wanted(what) {
				return errNobody
			}
			return do(ctx, disk)
		})
		if !errors.Is(err, errNobody) {
			return winerr.Wrap(op, name(disk), err)
		}
	}
}

// arrive counts a caller until leave is called.
func (c *changes) arrive(what change) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.callers == nil {
		c.callers = map[change]int{}
	}
	c.callers[what]++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.callers[what]--; c.callers[what] == 0 {
			delete(c.callers, what)
		}
	}
}

func (c *changes) wanted(what change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.callers[what] > 0
}
