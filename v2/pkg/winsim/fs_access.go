package winsim

import (
	"context"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// WriteFileAsUser is WriteFile by a member of Users only, as ContainerUser is. It fails with ERROR_ACCESS_DENIED (5) for a
// new file in the root of a volume whose access list does not let Users add files.
func (n *Node) WriteFileAsUser(path, content string) error {
	if err := n.checkUserAccess(path); err != nil {
		return err
	}
	return n.WriteFile(path, content)
}

func (n *Node) checkUserAccess(path string) error {
	const op = "create"
	defer n.lock()()
	at, err := n.files.find(op, path, true)
	if err != nil || at.entry != nil || at.parent == nil || at.parent.parent != nil {
		return err
	}
	list, err := sddl.Parse(at.fs.rootAccess)
	if err != nil || !list.Allows(sddl.AddFile, sddl.Users, sddl.Everyone, sddl.AuthenticatedUsers) {
		return winerr.Wrap(op, path, winerr.AccessDenied)
	}
	return nil
}

func (m *volumes) SetVolumeLabel(_ context.Context, id win.VolumeID, label string) error {
	return m.changeFileSystem(id, func(fs *fileSystem) error {
		if winpath.UTF16Len(label) > maxLabel {
			return winerr.InvalidName
		}
		fs.label = label
		return nil
	})
}

func (m *volumes) RootEntries(_ context.Context, id win.VolumeID) ([]win.DirEntry, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) ([]win.DirEntry, error) {
		fs.refreshBelow(fs.root, false)
		var entries []win.DirEntry
		for _, key := range slices.Sorted(maps.Keys(fs.root.children)) { // in NTFS order, as ListDirectory
			e := fs.root.children[key]
			entries = append(entries, win.DirEntry{Name: e.name, FileInfo: e.info()})
		}
		return entries, nil
	})
}

// RootSecurity returns the access list of the root directory. Windows makes up one for file systems
// that keep none.
func (m *volumes) RootSecurity(_ context.Context, id win.VolumeID) (string, error) {
	return read(m.onFileSystem, id, func(fs *fileSystem) (string, error) {
		if !fs.hasAccessLists() {
			return "D:(A;;FA;;;WD)", nil
		}
		return fs.rootAccess, nil
	})
}

func (fs *fileSystem) hasAccessLists() bool { return fs.kind == NTFS || fs.kind == ReFS }

func (m *volumes) SetRootSecurity(_ context.Context, id win.VolumeID, accessList string) error {
	return m.changeFileSystem(id, func(fs *fileSystem) error {
		if _, err := sddl.Parse(accessList); err != nil || !fs.hasAccessLists() {
			return winerr.InvalidParameter
		}
		fs.rootAccess = accessList
		return nil
	})
}

func (m *volumes) changeFileSystem(id win.VolumeID, change func(*fileSystem) error) error {
	return m.onFileSystem(id, func(fs *fileSystem) error {
		if err := m.volumeByID(string(id)).writable(); err != nil {
			return err
		}
		return change(fs)
	})
}
