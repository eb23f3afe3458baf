package winsim

import (
	"context"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

func (m *volumes) VolumeIDs(_ context.Context) ([]win.VolumeID, error) {
	defer m.lock()()
	ids := make([]win.VolumeID, 0, len(m.byGUID))
	for _, v := range m.byGUID {
		if v.present && !v.nameless && v.State != Gone {
			ids = append(ids, v.id())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func (m *volumes) VolumeExtents(_ context.Context, id win.VolumeID) ([]win.Extent, error) {
	return read(m.onVolume, id.Device(), func(v *volume) ([]win.Extent, error) {
		if v.extents[0].disk.nameless {
			return nil, winerr.InvalidFunction
		}
		extents := make([]win.Extent, 0, len(v.extents))
		for _, e := range v.extents {
			extents = append(extents, win.Extent{Disk: e.disk.Number, Offset: e.offset, Length: e.length})
		}
		return extents, nil
	})
}

// OnlineVolume brings a volume online that automount left offline.
func (m *volumes) OnlineVolume(_ context.Context, id win.VolumeID) error {
	return m.onVolume(id.Device(), func(v *volume) error {
		v.offline, v.nameless = false, false
		return nil
	})
}

// FlushVolume only checks the volume: nothing is cached.
func (m *volumes) FlushVolume(_ context.Context, id win.VolumeID) error {
	return m.onContent(id.Device(), func(v *volume) error {
		if v.offline {
			return winerr.NotReady
		}
		return v.writable()
	})
}

type mountedFolder struct {
	on    *volume
	link  *link
	at    *entry
	shows string // the id of the volume that the link names, folded; a node can have thousands of folders
}

func newMountedFolder(on *volume, at *entry) mountedFolder {
	shown, _ := at.link.MountedVolume()
	return mountedFolder{on, at.link, at, winpath.Fold(shown)}
}

func (f mountedFolder) dismantled() bool { return f.at.removed || f.at.link != f.link }

// announce registers a mounted folder with the mount manager, if its creator does so.
func (m *volumes) announce(at resolvedPath) {
	if l := at.entry.link; l != nil && l.announced {
		m.mountedFolders = append(m.mountedFolders, newMountedFolder(at.volume, at.entry))
	}
}

// announceAll registers the mounted folders among the files of volumes in a model.
func (m *volumes) announceAll() {
	for _, guid := range slices.Sorted(maps.Keys(m.byGUID)) {
		if v := m.byGUID[guid]; v.fileSystem() != nil {
			m.announceBelow(v, v.fileSystem().root)
		}
	}
}

func (m *volumes) announceBelow(v *volume, dir *entry) {
	for _, name := range slices.Sorted(maps.Keys(dir.children)) {
		child := dir.children[name]
		m.announce(resolvedPath{volume: v, entry: child})
		m.announceBelow(v, child)
	}
}

// VolumePaths lists the drive and the mounted folders of a volume.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumepathnamesforvolumenamew
func (m *volumes) VolumePaths(_ context.Context, id win.VolumeID) ([]string, error) {
	defer m.lock()()
	v := m.volumeByID(string(id))
	if v == nil || !v.present || v.State == Gone {
		return nil, winerr.FileNotFound
	}
	var paths []string
	if v.Letter != "" {
		paths = append(paths, v.Letter+`:\`)
	}
	m.mountedFolders = slices.DeleteFunc(m.mountedFolders, mountedFolder.dismantled)
	shown := winpath.Fold(string(v.id()))
	for _, f := range m.mountedFolders {
		if f.shows == shown {
			paths = append(paths, displayPath(f.on, f.at)+`\`)
		}
	}
	return paths, nil
}

func (m *volumes) SystemVolumes(_ context.Context) ([]win.VolumeID, error) {
	defer m.lock()()
	var ids []win.VolumeID
	for _, v := range m.systemVolumes() {
		ids = append(ids, v.id())
	}
	slices.Sort(ids[min(1, len(ids)):])
	return ids, nil
}

// systemVolumes are drive C:, and on each system disk the EFI partition, or else the first
// volume. mu is held.
func (m *volumes) systemVolumes() []*volume {
	var volumes []*volume
	if c := m.letters["C"]; c != nil && c.present {
		volumes = append(volumes, c)
	}
	for _, d := range append(m.disks.here(), m.disks.detached...) {
		if !d.System {
			continue
		}
		var boot *volume
		for _, p := range d.table.partitions {
			if p.volume != nil && (boot == nil || p.Type == win.PartitionEFI) {
				boot = p.volume
			}
		}
		if boot != nil && !slices.Contains(volumes, boot) {
			volumes = append(volumes, boot)
		}
	}
	return volumes
}

// needs reports whether Windows needs a volume on the disk. mu is held.
func (m *volumes) needs(d *disk) bool {
	return slices.ContainsFunc(m.systemVolumes(), func(v *volume) bool { return v.on(d) })
}
