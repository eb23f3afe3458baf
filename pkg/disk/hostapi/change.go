package api

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// changeLimit ends a change whose callers have all left. It is longer than all waits of the
// longest change together.
const changeLimit = 2 * time.Minute

// change names something that is done to one disk, or to all of them. It implements
// queue.Change.
type change struct {
	op     string
	object string
	fresh  bool
}

func (c change) Objects() []string { return []string{c.object} }

func (c change) Fresh() bool { return c.fresh }

// change does something to a disk when all earlier changes of it have ended. Callers who ask
// for the same change in a row share one run. A change that has begun is completed even if its
// callers leave: the disk is not left half done, and a retry joins the change. One that has not
// begun is dropped with its last caller: a disk must not go offline long after its user gave up
// and mounted it again.
func (h *host) change(ctx context.Context, op string, disk uint32, do func(context.Context, uint32) error) error {
	err := h.changes.Do(ctx, change{op: op, object: diskName(disk)}, changeLimit, func(ctx context.Context) error {
		return do(ctx, disk)
	})
	return winerr.Wrap(op, diskName(disk), err)
}
