package winsim

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// VolumeIDs lists the volumes that are there.
func (n *Node) VolumeIDs(ctx context.Context) ([]win.VolumeID, error) {
	if err := n.enter(ctx, "VolumeIDs", ""); err != nil {
		return nil, err
	}
	n.lock()
	defer n.mu.Unlock()
	ids := make([]win.VolumeID, 0, len(n.volumes))
	for _, v := range n.volumes {
		if v.present && !v.nameless && v.state != Gone {
			ids = append(ids, v.id())
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// VolumeExtents tells where the volume is.
func (n *Node) VolumeExtents(ctx context.Context, id win.VolumeID) ([]win.Extent, error) {
	v, unlock, err := n.openVolume(ctx, "VolumeExtents", id.Device())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if v.extents[0].disk.nameless {
		return nil, winerr.InvalidFunction
	}
	extents := make([]win.Extent, 0, len(v.extents))
	for _, e := range v.extents {
		extents = append(extents, win.Extent{Disk: e.disk.number, Offset: e.offset, Length: e.length})
	}
	return extents, nil
}

// OnlineVolume brings a volume online that automount left alone.
func (n *Node) OnlineVolume(ctx context.Context, id win.VolumeID) error {
	v, unlock, err := n.openVolume(ctx, "OnlineVolume", id.Device())
	if err != nil {
		return err
	}
	defer unlock()
	v.offline, v.nameless = false, false
	return nil
}

// FlushVolume has nothing to do: nothing is cached.
func (n *Node) FlushVolume(ctx context.Context, id win.VolumeID) error {
	v, unlock, err := n.openVolume(ctx, "FlushVolume", id.Device())
	if err != nil {
		return err
	}
	defer unlock()
	if v.offline {
		return winerr.NotReady
	}
	return v.writable()
}

// SetMountPoint makes an empty directory a mounted folder. Only the name of the volume is
// written there, so it stays when the volume is gone.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw
func (n *Node) SetMountPoint(ctx context.Context, path string, id win.VolumeID) error {
	if err := n.enter(ctx, "SetMountPoint", path, string(id)); err != nil {
		return err
	}
	n.lock()
	defer n.mu.Unlock()
	if _, ok := win.ParseVolumeID(string(id)); !ok {
		return winerr.InvalidParameter
	}
	v := n.volumeByID(string(id))
	if err := v.device(); err != nil && winerr.CodeOf(err) == winerr.FileNotFound {
		return err
	}
	at, err := n.directory().changeable(path)
	switch {
	case err != nil:
		return err
	case at.parent == nil:
		return winerr.DirNotEmpty // a drive letter that is in use
	case at.entry.children == nil:
		return winerr.Directory
	case at.entry.link != nil || len(at.entry.children) > 0:
		return winerr.DirNotEmpty
	case at.volume.fileSystem().kind == FAT32:
		return winerr.InvalidFunction // no reparse points
	}
	at.entry.link = &win.ReparsePoint{Tag: win.TagMountPoint, Substitute: `\??\Volume{` + v.guid + `}\`}
	return nil
}

// VolumeAtRoot names the volume of a drive or mounted folder. It asks the mount manager,
// which does not know volumes that are gone.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumenameforvolumemountpointw
func (n *Node) VolumeAtRoot(ctx context.Context, path string) (win.VolumeID, error) {
	if err := n.enter(ctx, "VolumeAtRoot", path); err != nil {
		return "", err
	}
	n.lock()
	defer n.mu.Unlock()
	v, _, names, err := n.startOf(path)
	if err != nil {
		return "", err
	}
	if len(names) > 0 {
		if v, err = n.volumeAtFolder(path); err != nil {
			return "", err
		}
	}
	if v == nil || !v.present || v.state == Gone {
		return "", winerr.FileNotFound
	}
	return v.id(), nil
}

func (n *Node) volumeAtFolder(path string) (*volume, error) {
	at, err := n.existing(path, false)
	switch {
	case err != nil:
		return nil, err
	case at.entry.children == nil:
		return nil, winerr.Directory
	case at.entry.link == nil || at.entry.link.Tag != win.TagMountPoint:
		return nil, winerr.NotAReparsePoint
	}
	id, mounted := at.entry.link.MountedVolume()
	if !mounted {
		return nil, winerr.InvalidParameter // a junction
	}
	return n.volumeByID(id), nil
}

// VolumeOfPath names the volume on which a path ends up.
func (n *Node) VolumeOfPath(ctx context.Context, path string) (win.VolumeID, error) {
	if err := n.enter(ctx, "VolumeOfPath", path); err != nil {
		return "", err
	}
	n.lock()
	defer n.mu.Unlock()
	at, err := n.existing(path, true)
	if err != nil {
		return "", err
	}
	return at.volume.id(), nil
}

// SystemVolumes names the volumes that Windows needs.
func (n *Node) SystemVolumes(ctx context.Context) ([]win.VolumeID, error) {
	if err := n.enter(ctx, "SystemVolumes", ""); err != nil {
		return nil, err
	}
	n.lock()
	defer n.mu.Unlock()
	var ids []win.VolumeID
	for _, v := range n.systemVolumes() {
		ids = append(ids, v.id())
	}
	slices.SortFunc(ids, func(a, b win.VolumeID) int {
		return cmp.Compare(strings.ToLower(string(a)), strings.ToLower(string(b)))
	})
	return ids, nil
}

// systemVolumes are drive C:, where the Windows directory is, and on each system disk the
// EFI partition, or without one the first volume. n.mu is held.
func (n *Node) systemVolumes() []*volume {
	var volumes []*volume
	if c := n.letters["C"]; c != nil && c.present {
		volumes = append(volumes, c)
	}
	for _, d := range n.systemDisks {
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
