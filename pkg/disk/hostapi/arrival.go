package api

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/parallel"
)

const (
	opAwait = "wait for the volume on"

	// arrivalLimit is how long a new volume may take. 20 to 300 ms are usual, and
	// seconds on a busy node.
	arrivalLimit = 30 * time.Second

	// settleLimit is the same for partitions that were there before. Theirs are best
	// waited for, since a driver will list them next, but need not exist.
	settleLimit = 10 * time.Second
)

// awaitNewVolume waits for the volume of a partition that we have created.
func (h *host) awaitNewVolume(ctx context.Context, disk target, p win.Partition) error {
	missing, err := h.awaitVolumes(ctx, disk, []win.Partition{p}, arrivalLimit)
	if err != nil || len(missing) == 0 {
		return err
	}
	table := "unknown"
	if layout, err := h.m.DriveLayout(ctx, disk.device); err == nil {
		table = describe(layout)
	}
	return winerr.New(winerr.Deadline, opAwait, disk.name(),
		"Windows has not made a volume of the new partition {%s} within %s; the table is %s; call again to wait longer", p.ID, arrivalLimit, table)
}

// settle waits for the volumes of a disk that has partitions.
func (h *host) settle(ctx context.Context, disk target, layout win.DriveLayout) error {
	missing, err := h.awaitVolumes(ctx, disk, mountable(layout), settleLimit)
	if len(missing) > 0 && err == nil {
		klog.FromContext(ctx).V(2).Info("Windows makes no volume of some partitions", "disk", disk.number, "table", describe(layout), "missing", len(missing))
	}
	return err
}

// awaitVolumes waits until each of the partitions has a volume, and returns those that
// have none when the time is up. The time is that of its sleeps; its calls, if they hang,
// end with ctx.
//
// Partitions become volumes in the background: the partition manager reports them, Plug
// and Play starts their devices, the mount manager names them. There are notifications of
// that, but to miss one is easier than to ask.
func (h *host) awaitVolumes(ctx context.Context, disk target, partitions []win.Partition, limit time.Duration) (missing []win.Partition, err error) {
	const (
		firstNudge = time.Second
		nudge      = 5 * time.Second
	)
	a := arrival{host: h, disk: disk, missing: slices.Clone(partitions), elsewhere: map[win.VolumeID]bool{}}
	nextNudge := firstNudge
	backoff := win.Backoff{First: 20 * time.Millisecond, Longest: 250 * time.Millisecond, Limit: limit}
	_, err = win.Poll(ctx, h.m, backoff, func(waited time.Duration) (done bool, err error) {
		if err := a.look(ctx, waited); err != nil {
			return false, winerr.As(kindOfOther(err), opAwait, disk.name(), err, "")
		}
		if len(a.missing) > 0 && waited >= nextNudge && waited < limit {
			nextNudge += nudge
			a.nudge(ctx)
		}
		return len(a.missing) == 0, nil
	})
	if err != nil {
		return nil, winerr.Wrap(opAwait, disk.name(), err)
	}
	return a.missing, nil
}

// arrival is a wait for volumes.
type arrival struct {
	*host
	disk    target
	missing []win.Partition

	elsewhere map[win.VolumeID]bool // volumes that need not be asked again
}

// look finds the volumes that have arrived. The GUID of a partition nearly always is that
// of its volume too, so the list of all volumes is gone through only when it turns out not
// to be: it may be long, and some of the volumes may be on sick disks.
func (a *arrival) look(ctx context.Context, waited time.Duration) error {
	const surely = 300 * time.Millisecond // volumes are there by then, as a rule
	byName := true
	for _, p := range slices.Clone(a.missing) {
		if (p.ID == win.GUID{}) { // MBR
			byName = false
			continue
		}
		a.found(ctx, win.VolumeID(`\\?\Volume{`+p.ID.String()+`}\`))
	}
	if len(a.missing) == 0 || (byName && waited < surely) {
		return ctx.Err()
	}
	volumes, err := a.m.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	volumes = slices.DeleteFunc(volumes, func(id win.VolumeID) bool { return a.elsewhere[id] })
	extents := make([][]win.Extent, len(volumes))
	failures := parallel.Each(ctx, len(volumes), patience, func(ctx context.Context, i int) (err error) {
		extents[i], err = a.m.VolumeExtents(ctx, volumes[i])
		return err
	})
	for i, id := range volumes {
		// One that fails may not be ready yet. One that hangs is not worth the time.
		if failures[i] == nil || errors.Is(failures[i], context.DeadlineExceeded) {
			a.elsewhere[id] = !a.match(ctx, id, extents[i])
		}
	}
	return ctx.Err()
}

// found looks whether a volume is one of the missing.
func (a *arrival) found(ctx context.Context, id win.VolumeID) {
	if extents, err := a.m.VolumeExtents(ctx, id); err == nil {
		a.match(ctx, id, extents)
	}
}

// match takes the partitions from the missing where a volume begins.
func (a *arrival) match(ctx context.Context, id win.VolumeID, extents []win.Extent) bool {
	before := len(a.missing)
	a.missing = slices.DeleteFunc(a.missing, func(p win.Partition) bool {
		return slices.ContainsFunc(extents, func(e win.Extent) bool { return e.Disk == a.disk.number && e.Offset == p.Offset })
	})
	if len(a.missing) == before {
		return false
	}
	// Where automatic mounting is switched off, a new volume stays offline until
	// somebody asks for it. Elsewhere it is online, and drivers may not know the call.
	// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-ioctl_volume_online
	_ = a.m.OnlineVolume(ctx, id)
	return true
}

// nudge helps when volumes are late: the disk may have been put offline again, the table
// may not have been read, and where automatic mounting is switched off the volume may not
// even have got a name.
func (a *arrival) nudge(ctx context.Context) {
	device := a.disk.device
	if now, err := a.m.DiskAttributes(ctx, device); err == nil && now.Offline {
		_ = a.m.SetDiskAttributes(ctx, device, win.DiskAttributes{}, win.DiskAttributes{Offline: true})
	}
	_ = a.m.UpdateDisk(ctx, device)
	for _, p := range a.missing {
		_ = a.m.OnlineVolume(ctx, win.VolumeID(win.PartitionDevice(a.disk.number, p.Number)))
	}
}
