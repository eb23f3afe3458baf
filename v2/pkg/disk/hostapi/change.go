package api

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// changeLimit ends a change whose callers have all left. It is longer than all waits of the
// longest change together.
const changeLimit = 2 * time.Minute

// changePause is how long a change may take before the disk must show that it answers.
const changePause = 5 * time.Second

// change names something that is done to one disk, or to all of them. It implements
// queue.Change.
type change struct {
	op     string
	object string
	mustBe MustBe
	fresh  bool
}

func (c change) Objects() []string { return []string{c.object} }

func (c change) Fresh() bool { return c.fresh }

// change does something to a disk when all earlier changes of it have ended. Callers who ask
// for the same change in a row share one run. A change that has begun is completed even if its
// callers leave: the disk is not left half done, and a retry joins the change. One that has not
// begun is dropped with its last caller: a disk must not go offline long after its user gave up
// and mounted it again.
func (d DiskAPI) change(op string, disk uint32, do func(context.Context, target) error) error {
	ctx, h := d.bound()
	err := h.changes.Do(ctx, change{op: op, object: diskName(disk), mustBe: d.mustBe}, changeLimit, func(ctx context.Context) error {
		if err := diskprobe.Refuse(ctx, h.m, op, diskName(disk), win.PhysicalDrive(disk)); err != nil {
			return err
		}
		only := func(context.Context) ([]uint32, error) { return []uint32{disk}, nil }
		return diskprobe.Watch(ctx, h.m, changePause, only, func(ctx context.Context) error {
			t, err := h.meant(ctx, op, disk, d.mustBe)
			if err != nil {
				return err
			}
			return do(ctx, t)
		})
	})
	return winerr.Wrap(op, diskName(disk), err)
}
