package api

import (
	"context"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

const (
	opInspect    = "look for a partition table on"
	opInitialize = "initialize"
)

// minDiskSize is what Windows wants for a partition table and room beside it: smaller
// disks are refused by MSFT_Disk.Initialize (41014).
// https://learn.microsoft.com/windows-hardware/drivers/storage/initialize-msft-disk
const minDiskSize = 32 << 20

func (h *host) isInitialized(ctx context.Context, disk uint32) (bool, error) {
	_, initialized, err := h.inspect(ctx, opInspect, disk)
	return initialized, err
}

// inspect reads the partition table of a disk, and reports whether there is one, or else a
// file system without one: Windows shows that as an MBR table with a partition at 0.
//
// Some drivers call a disk without any table MBR. Only its first sector can tell.
func (h *host) inspect(ctx context.Context, op string, disk uint32) (layout win.DriveLayout, initialized bool, err error) {
	device := win.PhysicalDrive(disk)
	layout, err = h.m.DriveLayout(ctx, device)
	switch {
	case err != nil:
		return layout, false, winerr.Wrap(op, name(disk), err)
	case layout.Style == win.StyleRaw:
		return layout, false, nil
	case layout.Style != win.StyleMBR || layout.Signature != 0 || slices.ContainsFunc(layout.Partitions, used):
		return layout, true, nil
	}
	geometry, err := h.m.DiskGeometry(ctx, device)
	if err != nil {
		return layout, false, winerr.Wrap(op, name(disk), err)
	}
	sector := make([]byte, sectorSize(geometry))
	if err := h.m.ReadDevice(ctx, device, 0, sector); err != nil {
		return layout, false, winerr.Wrap(op, name(disk), err)
	}
	return layout, bootSignature(sector), nil
}

// used tells an entry of a table from one of the free places in an MBR table.
func used(p win.Partition) bool {
	return p.Type != win.GUID{} || p.MBRType != 0 || p.Length != 0
}

// initialize gives a disk without a partition table an empty GPT. The disk is locked.
func (h *host) initialize(ctx context.Context, disk uint32) error {
	if err := h.refuseSystemDisk(ctx, opInitialize, disk); err != nil {
		return err
	}
	_, initialized, err := h.inspect(ctx, opInitialize, disk)
	if err != nil || initialized {
		return err
	}
	if err := h.online(ctx, opInitialize, disk); err != nil {
		return err
	}
	_, err = h.writeTable(ctx, disk)
	return err
}

// writeTable is initialize after the first look: the disk is online, is not that of
// Windows, and seemed to have no table. It returns the table that the disk then has.
//
// It destroys what is there. Therefore it looks again, and closer: disks that have just
// arrived, and disks that answer with errors, pass for blank.
func (h *host) writeTable(ctx context.Context, disk uint32) (win.DriveLayout, error) {
	const secondLook = 500 * time.Millisecond
	device := win.PhysicalDrive(disk)
	geometry, err := h.m.DiskGeometry(ctx, device)
	if err != nil {
		return win.DriveLayout{}, winerr.Wrap(opInitialize, name(disk), err)
	}
	if geometry.Size < minDiskSize {
		return win.DriveLayout{}, winerr.New(winerr.Invalid, opInitialize, name(disk),
			"it has %d bytes, and Windows puts a partition table on no disk below %d", geometry.Size, minDiskSize)
	}
	if err := h.m.Sleep(ctx, secondLook); err != nil {
		return win.DriveLayout{}, winerr.Wrap(opInitialize, name(disk), err)
	}
	layout, initialized, err := h.inspect(ctx, opInitialize, disk)
	if err != nil || initialized {
		return layout, err
	}
	if err := h.refuseData(ctx, disk, geometry); err != nil {
		return layout, err
	}
	if err := h.makeWritable(ctx, opInitialize, disk); err != nil {
		return layout, err
	}
	if err := h.m.CreateDisk(ctx, device, win.NewGUID()); err != nil {
		return layout, winerr.As(kindOfOurs(err), opInitialize, name(disk), err, "")
	}
	_ = h.m.UpdateDisk(ctx, device) // Windows reads the table by itself, only later
	return h.awaitTable(ctx, disk)
}

// awaitTable waits until Windows has read the new table.
func (h *host) awaitTable(ctx context.Context, disk uint32) (win.DriveLayout, error) {
	const (
		step  = 50 * time.Millisecond
		limit = 10 * time.Second
	)
	for waited := time.Duration(0); ; waited += step {
		layout, err := h.m.DriveLayout(ctx, win.PhysicalDrive(disk))
		switch {
		case err != nil:
			return layout, winerr.Wrap(opInitialize, name(disk), err)
		case layout.Style == win.StyleGPT:
			return layout, nil
		case waited >= limit:
			return layout, winerr.New(winerr.Deadline, opInitialize, name(disk),
				"%s after a GPT was written, Windows still calls the disk %s; rescan and try again", limit, layout.Style)
		}
		if err := h.m.Sleep(ctx, step); err != nil {
			return layout, winerr.Wrap(opInitialize, name(disk), err)
		}
	}
}
