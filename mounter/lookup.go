package mounter

import "context"

// FindDisk returns the number of the disk that has the keys. If Windows has not seen the disk yet,
// FindDisk makes Windows look for it. A disk that is missing is an error that matches fs.ErrNotExist.
// Stage does the same; FindDisk is for drivers whose node service passes the number on.
func (m *Mounter) FindDisk(ctx context.Context, disk Disk) (uint32, error) {
	const op = "find disk"
	if err := m.open(); err != nil {
		return 0, during(op, "", err)
	}
	found, err := m.find(ctx, disk)
	return found.number, during(op, "", err)
}

// DiskBytes returns the size of a disk after Windows has looked for a new one.
func (m *Mounter) DiskBytes(ctx context.Context, number uint32) (int64, error) {
	const op = "measure"
	if err := m.open(); err != nil {
		return 0, during(op, diskName(number), err)
	}
	size, err := m.newDiskSize(ctx, number)
	return size, during(op, diskName(number), err)
}

// StagedAt returns the volume at a path, which is where it is staged or published. If no volume is
// there, or one that is gone with its disk, the error matches fs.ErrNotExist and VolumeID is empty. If
// Windows does not know the disk of the volume, but may know it again, the error matches fs.ErrNotExist
// and VolumeID is set. Unstage removes what is left in both cases.
func (m *Mounter) StagedAt(ctx context.Context, volumePath string) (Staged, error) {
	const op = "look for the volume at"
	path, err := m.path(volumePath)
	if err != nil {
		return Staged{}, during(op, volumePath, err)
	}
	id, err := m.node.mountedAt(ctx, path)
	if err != nil {
		return Staged{}, during(op, path, err)
	}
	number, err := m.node.diskOf(ctx, id)
	return Staged{DiskNumber: number, VolumeID: id}, during(op, path, err)
}

// Exists reports whether a path exists. A link exists even if it leads nowhere; a
// mounted folder does not if its volume is gone with its disk.
func (m *Mounter) Exists(ctx context.Context, path string) (bool, error) {
	clean, err := m.path(path)
	if err != nil {
		return false, during("look for", path, err)
	}
	exists, err := m.node.exists(ctx, clean)
	return exists, during("look for", clean, err)
}

// MakeDir makes a folder, and those above it. Stage and Publish make the folders that they need.
func (m *Mounter) MakeDir(ctx context.Context, path string) error {
	clean, err := m.path(path)
	if err != nil {
		return during("make folder", path, err)
	}
	return during("make folder", clean, m.node.makeDir(ctx, clean))
}
