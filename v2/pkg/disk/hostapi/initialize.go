package api

import (
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opInspect    = "look for a partition table on"
	opInitialize = "initialize"
)

// minDiskSize is what Windows needs for a partition table and room beside it:
// MSFT_Disk.Initialize refuses smaller disks (41014).
// https://learn.microsoft.com/windows-hardware/drivers/storage/initialize-msft-disk
const minDiskSize = 32 << 20

// IsDiskInitialized implements HostAPI.
func (d DiskAPI) IsDiskInitialized(disk uint32) (bool, error) {
	ctx, h := d.bound()
	_, initialized, err := h.inspect(ctx, opInspect, numbered(disk))
	return initialized, err
}

// inspect reads the partition table of a disk, and reports whether there is one, or else a
// file system without one: Windows shows that as an MBR table with a partition at 0.
//
// Some drivers report MBR for a disk without any table. Only its first sector shows it.
func (h *host) inspect(ctx context.Context, op string, disk target) (layout win.DriveLayout, initialized bool, err error) {
	layout, err = h.m.DriveLayout(ctx, disk.device)
	switch {
	case err != nil:
		return layout, false, winerr.Wrap(op, disk.name(), err)
	case layout.Style == win.StyleRaw:
		return layout, false, nil
	case layout.Style != win.StyleMBR || layout.Signature != 0 || slices.ContainsFunc(layout.Partitions, used):
		return layout, true, nil
	}
	geometry, err := h.m.DiskGeometry(ctx, disk.device)
	if err != nil {
		return layout, false, winerr.Wrap(op, disk.name(), err)
	}
	sector, err := h.m.ReadDevice(ctx, disk.device, 0, int(sectorSize(geometry)))
	if err != nil {
		return layout, false, winerr.Wrap(op, disk.name(), err)
	}
	return layout, bootSignature(sector), nil
}

// used distinguishes an entry of a table from a free entry of an MBR table.
func used(p win.Partition) bool {
	return p.Type != win.GUID{} || p.MBRType != 0 || p.Length != 0
}

// initialize gives a disk without a partition table an empty GPT, in the queue of the disk.
func (h *host) initialize(ctx context.Context, disk target) error {
	if err := h.refuseSystemDisk(ctx, opInitialize, disk.number); err != nil {
		return err
	}
	_, initialized, err := h.inspect(ctx, opInitialize, disk)
	if err != nil || initialized {
		return err
	}
	if _, err := h.online(ctx, opInitialize, disk); err != nil {
		return err
	}
	t, err := h.pinned(ctx, opInitialize, disk)
	if err != nil {
		return err
	}
	_, _, err = h.writeTable(ctx, t)
	return err
}

// secondLook is the pause between two looks at a disk that seems empty: disks that have just
// arrived, and disks that answer with errors, look blank.
const secondLook = 500 * time.Millisecond

// writeTable is initialize after the first look: the disk is pinned, online, not the disk of
// Windows, and seemed to have no table. It returns the table that the disk then has, and whether
// it is a new one.
//
// It destroys what is there. So it looks again, and closer, and does nothing between the last look
// and the destruction. A read-only disk becomes writable only after it was found empty: if it has
// data, read-only may be intended.
func (h *host) writeTable(ctx context.Context, disk target) (layout win.DriveLayout, created bool, err error) {
	if disk.size < minDiskSize {
		return layout, false, winerr.New(winerr.Invalid, opInitialize, disk.name(),
			"it has %d bytes; Windows needs at least %d for a partition table", disk.size, minDiskSize)
	}
	layout, initialized, err := h.inspect(ctx, opInitialize, disk)
	if err != nil || initialized {
		return layout, false, err
	}
	if err := h.m.Sleep(ctx, secondLook); err != nil {
		return layout, false, winerr.Wrap(opInitialize, disk.name(), err)
	}
	layout, initialized, err = h.lookForData(ctx, &disk)
	if err != nil || initialized {
		return layout, false, err
	}
	if err := h.makeWritable(ctx, opInitialize, disk); err != nil { // which may take seconds
		return layout, false, err
	}
	layout, initialized, err = h.lookForData(ctx, &disk)
	if err != nil || initialized {
		return layout, false, err
	}
	id := win.NewGUID()
	if err := h.m.CreateDisk(ctx, disk.device, id); err != nil {
		return layout, false, winerr.As(kindOfOurs(err), opInitialize, disk.name(), err, "")
	}
	_ = h.m.UpdateDisk(ctx, disk.device) // Windows reads the table by itself, only later
	layout, err = h.awaitTable(ctx, disk, id)
	return layout, true, err
}

// lookForData reports whether a disk has a partition table. It fails if the disk has no table but
// is not empty, or is not the disk it was.
func (h *host) lookForData(ctx context.Context, disk *target) (layout win.DriveLayout, initialized bool, err error) {
	geometry, err := h.recognize(ctx, opInitialize, disk)
	if err != nil {
		return layout, false, err
	}
	layout, initialized, err = h.inspect(ctx, opInitialize, *disk)
	if err != nil || initialized {
		return layout, initialized, err
	}
	return layout, false, h.refuseData(ctx, *disk, geometry)
}

// awaitTable waits until Windows has read the new table, which has the given id.
func (h *host) awaitTable(ctx context.Context, disk target, id win.GUID) (win.DriveLayout, error) {
	const (
		step  = 50 * time.Millisecond
		limit = 10 * time.Second
	)
	var layout win.DriveLayout
	done, err := win.Poll(ctx, h.m, win.Backoff{First: step, Longest: step, Limit: limit}, func(time.Duration) (done bool, err error) {
		layout, err = h.m.DriveLayout(ctx, disk.device)
		return layout.Style == win.StyleGPT && layout.DiskID == id, err
	})
	switch {
	case err != nil:
		return layout, winerr.Wrap(opInitialize, disk.name(), err)
	case !done:
		return layout, winerr.New(winerr.Deadline, opInitialize, disk.name(),
			"%s after the GPT {%s} was written, Windows still shows %s {%s}; rescan and try again", limit, id, layout.Style, layout.DiskID)
	}
	return layout, nil
}
