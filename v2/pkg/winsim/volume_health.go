package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Damage is what is wrong with an NTFS.
type Damage struct {
	Dirty      bool       `yaml:"dirty"`      // the dirty bit, as on a volume that was torn off its node
	Corruption Corruption `yaml:"corruption"` // what NTFS has noted about its structures
}

// Corruption is how bad the structures of an NTFS are.
type Corruption string

const (
	Sound     Corruption = ""
	Suspected Corruption = "suspected" // MSFT_Volume says that a scan is needed
	Noted     Corruption = "noted"     // a spot fix
	Severe    Corruption = "severe"    // an offline repair
)

func (d Damage) check() *ModelError {
	return oneOf("corruption", d.Corruption, Suspected, Noted, Severe)
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
	v.fileSystem().damage = d
	return nil
}

// DiskHealth is what Windows says of a disk.
type DiskHealth string

const (
	DiskWell      DiskHealth = ""
	DiskPredicts  DiskHealth = "predicts-failure"
	DiskUnhealthy DiskHealth = "unhealthy"
)

// SetDiskHealth changes what Windows says of a disk, which works on; see FailDisk.
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

// VolumeHealth is MSFT_Volume. Each damage is a warning, as on dumps of Server 2016 and later.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
func (m *volumes) VolumeHealth(_ context.Context, id win.VolumeID) (map[win.VolumeID]win.VolumeHealth, error) {
	defer m.lock()()
	health := map[win.VolumeID]win.VolumeHealth{}
	for _, v := range m.byGUID {
		if v.nameless || !m.inService(v) || id != "" && !winpath.Equal(string(id), string(v.id())) {
			continue
		}
		fs, err := m.mounted(v)
		if err != nil {
			health[v.id()] = win.VolumeHealth{Status: win.DiskUnknown, Operational: []uint16{0}}
			continue
		}
		repair, corrupt := map[Corruption]uint16{
			Suspected: win.ScanNeeded, Noted: win.SpotFixNeeded, Severe: win.FullRepairNeeded,
		}[fs.damage.Corruption]
		if health[v.id()] = (win.VolumeHealth{Operational: []uint16{2}}); corrupt {
			health[v.id()] = win.VolumeHealth{Status: win.DiskWarning, Operational: []uint16{repair}}
		}
	}
	return health, nil
}

// inService reports whether the storage service knows a volume. mu is held.
func (m *volumes) inService(v *volume) bool {
	return v.openError() == nil && (v.cached || !m.now().Before(v.arrived.Add(m.storage.ServiceDelay)))
}
