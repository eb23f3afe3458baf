package api

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opAwait = "wait for the volume on"

	// arrivalTimeout is how long the volume of a partition may take. 20 to 300 ms are usual,
	// seconds on a busy node, and more than 10 s after a disk with data was attached
	// (drivers that got an OK before that crashed).
	arrivalTimeout = 30 * time.Second
)

// awaitArrival waits for the volumes of the partitions that Windows always makes volumes of. It
// is what both PartitionDisk and SetDiskState wait for: drivers list the volumes next and take
// the first one without a look at how many there are.
func (h *host) awaitArrival(ctx context.Context, disk target, layout win.DriveLayout) error {
	missing, err := h.awaitVolumes(ctx, disk, layout.Mountable())
	if err != nil || len(missing) == 0 {
		return err
	}
	if now, err := h.m.DriveLayout(ctx, disk.device); err == nil {
		layout = now
	}
	return winerr.New(winerr.Deadline, opAwait, disk.name(),
		"Windows has not created a volume for partition %d {%s} within %s; the table is %s; call again; ListVolumesOnDisk waits longer",
		missing[0].Number, missing[0].ID, arrivalTimeout, describe(layout))
}

// awaitDynamicVolume waits until any volume lies on a dynamic disk.
func (h *host) awaitDynamicVolume(ctx context.Context, disk target) error {
	backoff := win.Backoff{First: 20 * time.Millisecond, Longest: time.Second, Limit: arrivalTimeout}
	done, err := win.Poll(ctx, h.m, backoff, func(time.Duration) (bool, error) {
		volumes, err := h.m.VolumeIDs(ctx)
		if err != nil {
			return false, err
		}
		var found atomic.Bool
		tasks.Each(ctx, len(volumes), diskTimeout, func(ctx context.Context, i int) error {
			extents, err := h.m.VolumeExtents(ctx, volumes[i])
			if slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == disk.number }) {
				found.Store(true)
			}
			return err
		})
		return found.Load(), ctx.Err()
	})
	if err != nil || done {
		return winerr.Wrap(opAwait, disk.name(), err)
	}
	return winerr.New(winerr.InUse, opAwait, disk.name(),
		"it is a dynamic disk without a volume; create one in Disk Management, or clean the disk with diskpart if nothing on it is needed")
}

// awaitVolumes waits until each of the partitions has a volume, and returns those without one
// when the time is up.
//
// Windows makes volumes in the background: the partition manager reports the partitions, Plug
// and Play starts their devices, the mount manager names them. It sends notifications, but to
// poll is simpler than to be sure not to miss one.
func (h *host) awaitVolumes(ctx context.Context, disk target, partitions []win.Partition) (missing []win.Partition, err error) {
	const (
		firstNudge = time.Second
		nudge      = 5 * time.Second
	)
	a := arrival{host: h, disk: disk, missing: slices.Clone(partitions), onOtherDisks: map[win.VolumeID]bool{}}
	nextNudge := firstNudge
	backoff := win.Backoff{First: 20 * time.Millisecond, Longest: 250 * time.Millisecond, Limit: arrivalTimeout, Quarter: true}
	_, err = win.Poll(ctx, h.m, backoff, func(waited time.Duration) (done bool, err error) {
		if err := a.look(ctx, waited); err != nil {
			return false, winerr.As(kindOfOther(err), opAwait, disk.name(), err, "")
		}
		if len(a.missing) > 0 && waited >= nextNudge && waited < arrivalTimeout {
			nextNudge += nudge
			a.nudge(ctx)
		}
		if len(a.missing) == 0 && waited > 0 {
			return true, a.confirmTable(ctx, partitions)
		}
		return len(a.missing) == 0, nil
	})
	if err != nil {
		return nil, winerr.Wrap(opAwait, disk.name(), err)
	}
	return a.missing, nil
}

// confirmTable fails if the disk has left during the wait: the volumes can be those of another disk that has its number.
func (a *arrival) confirmTable(ctx context.Context, partitions []win.Partition) error {
	layout, err := a.m.DriveLayout(ctx, a.disk.device)
	has := func(want win.Partition) bool {
		return slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool { return p.ID == want.ID && p.Offset == want.Offset })
	}
	for _, p := range partitions {
		if err == nil && !has(p) {
			return a.disk.isAnother(opAwait, "partition {"+p.ID.String()+"}")
		}
	}
	return err
}

type arrival struct {
	*host
	disk    target
	missing []win.Partition

	onOtherDisks map[win.VolumeID]bool // volumes that need not be asked again
}

// look finds the volumes that have arrived. A partition and its volume nearly always have the
// same GUID. Only if they do not, look goes through the list of all volumes: it may be long, and
// some of the volumes may be on disks that do not answer.
func (a *arrival) look(ctx context.Context, waited time.Duration) error {
	const usualArrival = 300 * time.Millisecond
	byName := true
	for _, p := range slices.Clone(a.missing) {
		if (p.ID == win.GUID{}) { // MBR
			byName = false
			continue
		}
		a.found(ctx, volumeNamed(p))
	}
	if len(a.missing) == 0 || (byName && waited < usualArrival) {
		return ctx.Err()
	}
	volumes, err := a.m.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	volumes = slices.DeleteFunc(volumes, func(id win.VolumeID) bool { return a.onOtherDisks[id] })
	extents := make([][]win.Extent, len(volumes))
	failures := tasks.Each(ctx, len(volumes), diskTimeout, func(ctx context.Context, i int) (err error) {
		extents[i], err = a.m.VolumeExtents(ctx, volumes[i])
		return err
	})
	for i, id := range volumes {
		// A volume that fails may not be ready yet. One that hangs is not asked again.
		if failures[i] == nil || errors.Is(failures[i], context.DeadlineExceeded) {
			a.onOtherDisks[id] = !a.match(ctx, id, extents[i])
		}
	}
	return ctx.Err()
}

func (a *arrival) found(ctx context.Context, id win.VolumeID) {
	if extents, err := a.m.VolumeExtents(ctx, id); err == nil {
		a.match(ctx, id, extents)
	}
}

// match removes the partitions where a volume begins from the missing ones.
func (a *arrival) match(ctx context.Context, id win.VolumeID, extents []win.Extent) bool {
	before := len(a.missing)
	a.missing = slices.DeleteFunc(a.missing, func(p win.Partition) bool {
		return slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == a.disk.number && e.Offset == p.Offset })
	})
	if len(a.missing) == before {
		return false
	}
	// If automatic mounting is off, a new volume stays offline until a program asks for it.
	// Otherwise it is online, and its driver may not know the call.
	// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_volume_online
	_ = a.m.OnlineVolume(ctx, id)
	return true
}

// nudge helps when volumes are late: the disk may be offline again, Windows may not have read
// the table, and if automatic mounting is off the volume may not have a name yet.
//
// It leaves another disk alone that has got the number meanwhile.
func (a *arrival) nudge(ctx context.Context) {
	device := a.disk.device
	layout, err := a.m.DriveLayout(ctx, device)
	if err != nil || !slices.ContainsFunc(layout.Partitions, func(p win.Partition) bool { return p == a.missing[0] }) {
		return
	}
	if now, err := a.m.DiskAttributes(ctx, device); err == nil {
		_, _ = a.onlineFrom(ctx, opAwait, a.disk, now)
	}
	_ = a.m.UpdateDisk(ctx, device)
	for _, p := range a.missing {
		_ = a.m.OnlineVolume(ctx, win.VolumeID(win.PartitionDevice(a.disk.number, p.Number)))
	}
}
