package local

import (
	"context"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// directory is win.Directory. Entries are opened relative to its handle, so no name but the
// entry's own is looked up, and that one not followed.
//
// What can hang is its volume, so calls in a directory wait for each other at the directory,
// not at each entry.
type directory struct {
	*refCount
	hangs  hangPoint // of all calls in it
	handle windows.Handle
}

// openDirectory opens a directory by a function that returns a handle, and closes it again
// if check refuses it or the caller has left meanwhile.
func openDirectory(ctx context.Context, hangs hangPoint, open func() (windows.Handle, error), check func(win.FileInfo) error) (*directory, error) {
	d := &directory{hangs: hangs}
	d.refCount = newRefCount(func() {
		if d.handle != 0 {
			windows.CloseHandle(d.handle)
		}
	})
	err := act(ctx, hangs.kind, hangs.object, func() error {
		return d.use(func() (err error) {
			if d.handle, err = open(); err != nil {
				return err
			}
			info, err := fileInfo(d.handle)
			if err != nil {
				return err
			}
			return check(info)
		})
	})
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func isDirectory(info win.FileInfo) error {
	switch {
	case info.Tag.NameSurrogate():
		return winerr.ReparsePointEncounter
	case !info.Directory:
		return winerr.Directory
	default:
		return nil
	}
}

// isListable is isDirectory with the one code that the seam has for both.
func isListable(info win.FileInfo) error {
	if isDirectory(info) != nil {
		return winerr.Directory
	}
	return nil
}

// at opens an entry itself, never what it leads to. The caller closes the handle.
func (d *directory) at(name string, how opening) (handle windows.Handle, err error) {
	if strings.ContainsAny(name, `\/`) {
		return 0, winerr.InvalidName
	}
	err = d.use(func() error {
		handle, err = openAt(d.handle, name, how)
		return err
	})
	return handle, err
}

// entry returns the object that calls in an entry can hang on. On a volume or server that is
// one object for all entries.
func (d *directory) entry(name string) string {
	if d.hangs.kind != reachFile {
		return d.hangs.object
	}
	return winpath.Join(d.hangs.object, name)
}

// askEntry opens an entry, asks the handle and closes it.
func askEntry[T any](ctx context.Context, d *directory, name string, ask func(windows.Handle) (T, error)) (T, error) {
	return within(ctx, d.hangs.kind, d.hangs.object, func() (T, error) { return openedEntry(d, name, ask) })
}

func openedEntry[T any](d *directory, name string, ask func(windows.Handle) (T, error)) (T, error) {
	handle, err := d.at(name, opening{access: look})
	if err != nil {
		var none T
		return none, err
	}
	defer windows.CloseHandle(handle)
	return ask(handle)
}

func lookAtEntry[T any](ctx context.Context, d *directory, name string, ordinary func(win.FileInfo) (T, error), ask func(windows.Handle) (T, error)) (T, error) {
	return within(ctx, d.hangs.kind, d.hangs.object, func() (T, error) {
		info, err := d.attributesByName(name)
		return attributesOr(info, err, ordinary, func() (T, error) { return openedEntry(d, name, ask) })
	})
}

func (d *directory) attributesByName(name string) (info win.FileInfo, err error) {
	if strings.ContainsAny(name, `\/`) {
		return info, winerr.InvalidName
	}
	err = d.use(func() error {
		info, err = attributesByName(d.handle, name)
		return err
	})
	return info, err
}

func (d *directory) FileInfo(ctx context.Context, name string) (win.FileInfo, error) {
	return lookAtEntry(ctx, d, name, itself, fileInfo)
}

func (d *directory) Location(ctx context.Context, name string) (string, error) {
	return askEntry(ctx, d, name, winapi.FinalPath)
}

func (d *directory) ReparsePoint(ctx context.Context, name string) (win.ReparsePoint, error) {
	return lookAtEntry(ctx, d, name, noLink, reparsePoint)
}

func (d *directory) Open(ctx context.Context, name string) (win.Directory, error) {
	dir, err := openDirectory(ctx, hangPoint{d.hangs.kind, d.entry(name)}, func() (windows.Handle, error) {
		return d.at(name, opening{access: look})
	}, isDirectory)
	if err != nil {
		return nil, err
	}
	return dir, nil
}

// ListDirectory opens a directory that counts as the same object: a tree can be so deep that
// the paths in it would take more memory than everything else.
func (d *directory) ListDirectory(ctx context.Context, name string, each func(win.Tree, []win.DirEntry) error) error {
	dir, err := openDirectory(ctx, d.hangs, func() (windows.Handle, error) {
		if name == "" {
			return d.openSelf(look | windows.FILE_LIST_DIRECTORY)
		}
		return d.at(name, opening{access: look | windows.FILE_LIST_DIRECTORY})
	}, isListable)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		entries, err := dir.listNext(ctx)
		switch {
		case winerr.CodeOf(err) == winerr.NoMoreFiles:
			return nil
		case err != nil:
			return err
		}
		if err := each(dir, entries); err != nil {
			return err
		}
	}
}

func (d *directory) listNext(ctx context.Context) ([]win.DirEntry, error) {
	return within(ctx, d.hangs.kind, d.hangs.object, func() (entries []win.DirEntry, err error) {
		err = d.use(func() error {
			entries, err = readEntries(d.handle)
			return err
		})
		return entries, err
	})
}

func (d *directory) ChangedAt(ctx context.Context, name string) (time.Time, error) {
	return askEntry(ctx, d, name, changedAt)
}

// RemoveLink opens a name like SetMountPoint, which then waits or fails, and with the right to
// remove it.
func (d *directory) RemoveLink(ctx context.Context, name string, link win.ReparsePoint, changed time.Time) (removed bool, err error) {
	return within(ctx, askMounts, d.entry(name), func() (bool, error) {
		how := mounting
		how.access |= windows.DELETE
		handle, err := d.at(name, how)
		if err != nil {
			return false, err
		}
		defer windows.CloseHandle(handle)
		point, err := reparsePoint(handle)
		switch {
		case winerr.CodeOf(err) == winerr.NotAReparsePoint:
			return false, nil
		case err != nil || point != link:
			return false, err
		}
		if at, err := changedAt(handle); err != nil || !at.Equal(changed) {
			return false, err
		}
		if id, mounted := point.MountedVolume(); mounted {
			if err := control(handle, windows.FSCTL_DELETE_REPARSE_POINT, winlayout.EncodeReparseTag(point.Tag)); err != nil {
				return false, err
			}
			notifyMountManager(ctx, winapi.MountManagerMountPointDeleted, folderOf(handle), win.VolumeID(id))
		}
		return true, remove(handle)
	})
}

// makingDirectory asks for what CreateDirectoryW asks for.
var makingDirectory = opening{
	access:      windows.FILE_LIST_DIRECTORY | windows.SYNCHRONIZE,
	disposition: windows.FILE_CREATE,
	options:     windows.FILE_DIRECTORY_FILE,
}

func (d *directory) CreateDirectory(ctx context.Context, name string) error {
	return act(ctx, d.hangs.kind, d.hangs.object, func() error {
		handle, err := d.at(name, makingDirectory)
		if err != nil {
			return err
		}
		windows.CloseHandle(handle)
		return nil
	})
}

// Remove opens a name with the rights to remove it and to clear a read-only attribute. If the
// latter are denied, DELETE alone must do: a right to delete children grants no other access
// to the entry, not even SYNCHRONIZE.
func (d *directory) Remove(ctx context.Context, name string) error {
	return act(ctx, d.hangs.kind, d.hangs.object, func() error {
		handle, err := d.at(name, opening{access: windows.DELETE | windows.FILE_READ_ATTRIBUTES | windows.FILE_WRITE_ATTRIBUTES})
		if winerr.CodeOf(err) == winerr.AccessDenied {
			handle, err = d.at(name, opening{access: windows.DELETE})
		}
		if err != nil {
			return err
		}
		defer windows.CloseHandle(handle)
		return remove(handle)
	})
}
