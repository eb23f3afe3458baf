package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// SetMountPoint makes an empty directory a mounted folder. It stores only the name of the
// volume, so it outlives the volume.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-setvolumemountpointw
func (d directory) SetMountPoint(_ context.Context, name string, id win.VolumeID) error {
	return d.on(name, func(at resolvedPath) error {
		if _, ok := win.ParseVolumeID(string(id)); !ok {
			return winerr.InvalidParameter
		}
		v := d.files.volumes.volumeByID(string(id))
		if err := v.openError(); err != nil && winerr.CodeOf(err) == winerr.FileNotFound {
			return err
		}
		if at.entry == nil {
			return winerr.FileNotFound
		}
		at.fs.refresh(at.entry)
		switch err := at.changeable(); {
		case err != nil:
			return err
		case at.entry.link != nil:
			return winerr.DirNotEmpty
		case at.entry.children == nil:
			return winerr.Directory
		case len(at.entry.children) > 0:
			return winerr.DirNotEmpty
		}
		mounted := &link{ReparsePoint: winlayout.MountedFolder(v.id()), announced: !d.files.volumes.storage.LoseMountNotices}
		if err := mounted.checkFits(at.fs); err != nil {
			return err
		}
		d.files.observe("SetMountPoint", at, true)
		at.entry.link, at.entry.changedAt = mounted, d.files.date()
		at.fs.rewrite(at.entry)
		d.files.volumes.announce(at)
		return nil
	})
}

func (d directory) DeleteMountPoint(_ context.Context, name string) error {
	return d.onExisting(name, func(at resolvedPath) error {
		if err := at.changeable(); err != nil {
			return err
		}
		point, err := at.entry.link.read()
		if err != nil {
			return err
		}
		if _, mounted := point.MountedVolume(); !mounted {
			return winerr.InvalidParameter
		}
		d.files.observe("DeleteMountPoint", at, true)
		at.entry.link, at.entry.changedAt = nil, d.files.date()
		at.fs.rewrite(at.entry)
		return nil
	})
}

// VolumeOfDrive returns the volume of a drive.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumenameforvolumemountpointw
func (t *files) VolumeOfDrive(_ context.Context, root string) (win.VolumeID, error) {
	defer t.lock()()
	v, _, names, err := t.startOf(root)
	switch {
	case winerr.CodeOf(err) == winerr.PathNotFound, err == nil && v.State == Gone:
		return "", winerr.FileNotFound // Wine's dlls/kernel32/tests/volume.c
	case err != nil:
		return "", err
	case names != "" || v.share != nil:
		return "", winerr.NotAReparsePoint // not the root of a drive
	}
	return v.id(), nil
}
