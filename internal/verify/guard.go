package verify

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// guardedMachine passes on what changes a disk or a volume only if it is one of ours, so that no
// mistake of a question, of the suite or of the library can reach another one.
type guardedMachine struct {
	win.Machine
	run *run
}

// disk checks that a device is a disk of ours, or one that no machine has.
func (g guardedMachine) disk(ctx context.Context, d win.Device) error {
	if d == win.PhysicalDrive(missingDisk) {
		return nil
	}
	at, err := g.DeviceNumber(ctx, d)
	if err != nil {
		return err
	}
	if at.Type != win.DeviceTypeDisk {
		return fmt.Errorf("%s is not a disk: %w", d, winerr.AccessDenied)
	}
	_, err = g.run.disk(at.Number)
	return err
}

// volume checks that a volume is on disks of ours, or is one that no machine has.
func (g guardedMachine) volume(ctx context.Context, id win.VolumeID) error {
	if id == missingVolume {
		return nil
	}
	extents, err := g.VolumeExtents(ctx, id)
	if err != nil {
		return err
	}
	if len(extents) == 0 {
		return fmt.Errorf("%s is on no disk: %w", id, winerr.AccessDenied)
	}
	for _, extent := range extents {
		if _, err := g.run.disk(extent.Disk); err != nil {
			return err
		}
	}
	return nil
}

func (g guardedMachine) SetDiskAttributes(ctx context.Context, d win.Device, attributes, mask win.DiskAttributes) error {
	if err := g.disk(ctx, d); err != nil {
		return err
	}
	return g.Machine.SetDiskAttributes(ctx, d, attributes, mask)
}

func (g guardedMachine) SetDriveLayout(ctx context.Context, d win.Device, layout win.DriveLayout) error {
	if err := g.disk(ctx, d); err != nil {
		return err
	}
	return g.Machine.SetDriveLayout(ctx, d, layout)
}

func (g guardedMachine) CreateDisk(ctx context.Context, d win.Device, id win.GUID) error {
	if err := g.disk(ctx, d); err != nil {
		return err
	}
	return g.Machine.CreateDisk(ctx, d, id)
}

func (g guardedMachine) GrowPartition(ctx context.Context, d win.Device, partition uint32, bytes int64) error {
	if err := g.disk(ctx, d); err != nil {
		return err
	}
	return g.Machine.GrowPartition(ctx, d, partition, bytes)
}

func (g guardedMachine) ResizePartition(ctx context.Context, number uint32, partition win.GUID, size int64) error {
	if err := g.disk(ctx, win.PhysicalDrive(number)); err != nil {
		return err
	}
	return g.Machine.ResizePartition(ctx, number, partition, size)
}

func (g guardedMachine) ExtendVolume(ctx context.Context, id win.VolumeID, sectors int64) error {
	if err := g.volume(ctx, id); err != nil {
		return err
	}
	return g.Machine.ExtendVolume(ctx, id, sectors)
}

func (g guardedMachine) OnlineVolume(ctx context.Context, id win.VolumeID) error {
	if err := g.volume(ctx, id); err != nil {
		return err
	}
	return g.Machine.OnlineVolume(ctx, id)
}

func (g guardedMachine) Format(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	if err := g.volume(ctx, id); err != nil {
		return err
	}
	return g.Machine.Format(ctx, id, options)
}

func (g guardedMachine) FormatLegacy(ctx context.Context, id win.VolumeID, options win.FormatOptions) error {
	if err := g.volume(ctx, id); err != nil {
		return err
	}
	return g.Machine.FormatLegacy(ctx, id, options)
}

func (g guardedMachine) SetVolumeLabel(ctx context.Context, id win.VolumeID, label string) error {
	if err := g.volume(ctx, id); err != nil {
		return err
	}
	return g.Machine.SetVolumeLabel(ctx, id, label)
}

func (g guardedMachine) SetRootSecurity(ctx context.Context, id win.VolumeID, accessList string) error {
	if err := g.volume(ctx, id); err != nil {
		return err
	}
	return g.Machine.SetRootSecurity(ctx, id, accessList)
}
