package winsim

import (
	"context"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Damage is what is wrong with an NTFS.
type Damage struct {
	// Dirty is the dirty bit, as on a volume that was torn off its node.
	Dirty bool `yaml:"dirty" json:"dirty,omitzero"`
	// Corruption is what its structures have.
	Corruption Corruption `yaml:"corruption" json:"corruption,omitzero"`
	// Files are paths from the root that cannot be read: ERROR_FILE_CORRUPT (1392). A repair that mends the
	// corruption mends them.
	Files []string `yaml:"files" json:"files,omitzero"`
}

// Corruption is how bad the structures of an NTFS are.
type Corruption string

// How bad they are.
const (
	Sound     Corruption = ""
	Unnoticed Corruption = "unnoticed" // a scan finds it
	Suspected Corruption = "suspected" // NTFS has met it; MSFT_Volume.HealthStatus says that a scan is needed
	Noted     Corruption = "noted"     // a spot fix mends it
	Severe    Corruption = "severe"    // only an offline repair mends it
	Lost      Corruption = "lost"      // nothing mends it
)

func (d Damage) check() *ModelError {
	return oneOf("corruption", d.Corruption, Unnoticed, Suspected, Noted, Severe, Lost)
}

// DamageVolume replaces what is wrong with the file system of a volume.
func (n *Node) DamageVolume(volumeID string, d Damage) error {
	const op = "damage volume"
	if err := d.check(); err != nil {
		return winerr.New(winerr.Invalid, op, volumeID, "%s", err.Problem)
	}
	defer n.lock()()
	v := n.volumes.volumeByID(volumeID)
	if v == nil || v.fileSystem() == nil {
		return winerr.New(winerr.NotFound, op, volumeID, "there is no such volume with a file system")
	}
	n.changed()
	v.fileSystem().damage = d
	return nil
}

// DiskHealth is what Windows says of a disk.
type DiskHealth string

// What it says.
const (
	DiskWell      DiskHealth = ""
	DiskPredicts  DiskHealth = "predicts-failure"
	DiskUnhealthy DiskHealth = "unhealthy"
)

// SetDiskHealth changes what Windows says of a disk. The disk works on; see FailDisk.
func (n *Node) SetDiskHealth(number uint32, health DiskHealth) error {
	return n.disks.changeDisk("set health of disk", number, func(d *disk) { d.Health = health })
}

// DiskHealth is MSFT_PhysicalDisk, which knows the disks that Windows has found.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-physicaldisk
func (m *disks) DiskHealth(context.Context) (map[uint32]win.DiskHealth, error) {
	defer m.lock()()
	health := map[uint32]win.DiskHealth{}
	for number, d := range m.byNumber {
		switch {
		case d.Dying:
			health[number] = win.DiskHealth{Status: win.DiskUnhealthy, Operational: []uint16{win.IOError}}
		case d.Health == DiskPredicts:
			health[number] = win.DiskHealth{Status: win.DiskWarning, Operational: []uint16{win.PredictiveFailure}}
		case d.Health == DiskUnhealthy:
			health[number] = win.DiskHealth{Status: win.DiskUnhealthy, Operational: []uint16{win.LostCommunication}}
		default:
			health[number] = win.DiskHealth{Operational: []uint16{2}}
		}
	}
	return health, nil
}

// VolumeDirty is FSCTL_IS_VOLUME_DIRTY.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_is_volume_dirty
func (m *volumes) VolumeDirty(_ context.Context, id win.VolumeID) (bool, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) (bool, error) {
		if fs.kind == CDFS {
			return false, winerr.InvalidFunction
		}
		return fs.damage.Dirty, nil
	})
}

// VolumeHealth is MSFT_Volume.HealthStatus.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
func (m *volumes) VolumeHealth(_ context.Context, id win.VolumeID) (map[win.VolumeID]win.VolumeHealth, error) {
	defer m.lock()()
	health := map[win.VolumeID]win.VolumeHealth{}
	for _, v := range m.byGUID {
		if v.Nameless || !m.inService(v) || id != "" && !winpath.Equal(string(id), string(v.id())) {
			continue
		}
		fs, err := m.mounted(v)
		if err != nil {
			health[v.id()] = win.HealthUnknown
			continue
		}
		health[v.id()] = map[Corruption]win.VolumeHealth{
			Suspected: win.ScanNeeded, Noted: win.SpotFixNeeded, Severe: win.FullRepairNeeded, Lost: win.FullRepairNeeded,
		}[fs.damage.Corruption]
	}
	return health, nil
}

// inService reports whether the storage service knows a volume. mu is held.
func (m *volumes) inService(v *volume) bool {
	return v.openError() == nil && (v.InServiceCache || !m.now().Before(v.Arrived.Add(m.storage.ServiceDelay)))
}

// RepairVolume is MSFT_Volume.Repair. The provider continues even if its caller goes away.
// https://learn.microsoft.com/windows-hardware/drivers/storage/repair-msft-volume
func (m *volumes) RepairVolume(ctx context.Context, id win.VolumeID, how win.Repair) error {
	m.lock()
	v := m.volumeByID(string(id))
	if err := m.refuseRepair(v, how); err != nil {
		m.mu.Unlock()
		return err
	}
	took := m.storage.RepairTime
	if how == win.RepairScan {
		took = m.storage.ScanTime
	}
	v.repair, v.interrupted = how, false
	var result error = winerr.StorageIOError // guarded by mu
	m.after(took, m.repairEnd(v, how, func(err error) { result = err }))
	m.changed()
	m.mu.Unlock()
	if err := m.Sleep(ctx, took); err != nil {
		return err
	}
	defer m.lock()()
	return result
}

// refuseRepair returns why a volume cannot be scanned or repaired. mu is held.
func (m *volumes) refuseRepair(v *volume, how win.Repair) error {
	switch {
	case v == nil || !m.inService(v):
		return winerr.WMINotFound
	case v.contentError() != nil:
		return winerr.StorageIOError
	case v.repair != "" || v.formatting:
		return winerr.StorageScanRunning
	}
	fs, err := m.mounted(v)
	switch {
	case err != nil:
		return winerr.StorageNoFileSystem
	case fs.kind != NTFS:
		return winerr.StorageFileSystem
	case v.writable() != nil:
		return winerr.StorageReadOnly
	case how != win.RepairScan && (fs.root.anyInUse() || slices.Contains(m.systemVolumes(), v)):
		return winerr.StorageCannotOpen // it must be dismounted
	}
	return nil
}

// repairEnd completes a scan or repair, and passes the result to done unless the volume has left.
func (m *volumes) repairEnd(v *volume, how win.Repair, done func(error)) event {
	return event{Event: Event{Kind: repairEnds, Repair: string(how)}, of: v, run: func() {
		v.repair = ""
		fs := v.fileSystem()
		if v.interrupted || fs == nil {
			return
		}
		done(fs.damage.mend(how, m.storage.DirtyStays))
	}}
}

// mend is what a scan or repair does, and returns.
func (d *Damage) mend(how win.Repair, dirtyStays bool) error {
	if how == win.RepairScan {
		if d.Corruption == Unnoticed || d.Corruption == Suspected {
			d.Corruption = Noted
		}
		return nil
	}
	switch {
	case d.Corruption == Lost, d.Corruption == Severe && how == win.RepairSpotFix:
		return winerr.StorageRepairFailed
	case how == win.RepairSpotFix && (d.Corruption == Unnoticed || d.Corruption == Suspected):
		return nil // it mends only what is noted
	}
	*d = Damage{Dirty: d.Dirty && dirtyStays && how == win.RepairSpotFix}
	return nil
}

// unreadable reports whether the damage covers a file, whose path begins with its volume.
func (d Damage) unreadable(path string) bool {
	return slices.ContainsFunc(d.Files, func(damaged string) bool {
		return strings.HasSuffix(winpath.Fold(path), winpath.Fold(`\`+strings.Trim(damaged, `\`)))
	})
}
