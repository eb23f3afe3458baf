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
)

// directory is win.Directory. Entries are opened relative to its handle, so no name but the
// entry's own is looked up, and that one not followed. Nothing closes it during a call.
type directory struct{ handle windows.Handle }

func (d directory) Close() { windows.CloseHandle(d.handle) }

// openDirectory takes the handle of a directory, and closes it again if check refuses it.
func openDirectory(handle windows.Handle, err error, check func(win.FileInfo) error) (directory, error) {
	if err != nil {
		return directory{}, err
	}
	info, err := fileInfo(handle)
	if err == nil {
		err = check(info)
	}
	if err != nil {
		windows.CloseHandle(handle)
	}
	return directory{handle}, err
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
func (d directory) at(name string, how openOptions) (windows.Handle, error) {
	if strings.ContainsAny(name, `\/`) {
		return 0, winerr.InvalidName
	}
	return openAt(d.handle, name, how)
}

// askEntry opens an entry, asks the handle and closes it.
func askEntry[T any](d directory, name string, ask func(windows.Handle) (T, error)) (T, error) {
	handle, err := d.at(name, openOptions{access: look})
	if err != nil {
		var none T
		return none, err
	}
	defer windows.CloseHandle(handle)
	return ask(handle)
}

func (d directory) FileInfo(_ context.Context, name string) (win.FileInfo, error) {
	return askEntry(d, name, fileInfo)
}

func (d directory) Location(_ context.Context, name string) (string, error) {
	return askEntry(d, name, winapi.FinalPath)
}

func (d directory) ReparsePoint(_ context.Context, name string) (win.ReparsePoint, error) {
	return askEntry(d, name, reparsePoint)
}

func (d directory) Open(_ context.Context, name string) (win.Directory, error) {
	handle, err := d.at(name, openOptions{access: look})
	dir, err := openDirectory(handle, err, isDirectory)
	if err != nil {
		return nil, err
	}
	return dir, nil
}

func (d directory) ListDirectory(_ context.Context, name string) (win.Listing, error) {
	open := func() (windows.Handle, error) {
		if name == "" {
			return d.openSelf(look | windows.FILE_LIST_DIRECTORY)
		}
		return d.at(name, openOptions{access: look | windows.FILE_LIST_DIRECTORY})
	}
	handle, err := open()
	dir, err := openDirectory(handle, err, isListable)
	if err != nil {
		return nil, err
	}
	return listing{dir}, nil
}

// listing is win.Listing. Windows remembers with the handle what it has listed.
type listing struct{ directory }

func (l listing) Next(context.Context) ([]win.DirEntry, error) {
	for {
		entries, err := readEntries(l.handle)
		switch {
		case winerr.CodeOf(err) == winerr.NoMoreFiles:
			return nil, nil
		case err != nil || len(entries) > 0: // the first ones can be "." and ".." only
			return entries, err
		}
	}
}

func (d directory) ChangedAt(_ context.Context, name string) (time.Time, error) {
	return askEntry(d, name, changedAt)
}

// RemoveLink opens a name like SetMountPoint, which then waits or fails, and with the right to
// remove it.
func (d directory) RemoveLink(ctx context.Context, name string, link win.ReparsePoint, changed time.Time) (removed bool, err error) {
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
}

// makingDirectory asks for what CreateDirectoryW asks for.
var makingDirectory = openOptions{
	access:      windows.FILE_LIST_DIRECTORY | windows.SYNCHRONIZE,
	disposition: windows.FILE_CREATE,
	options:     windows.FILE_DIRECTORY_FILE,
}

func (d directory) CreateDirectory(_ context.Context, name string) error {
	handle, err := d.at(name, makingDirectory)
	if err != nil {
		return err
	}
	windows.CloseHandle(handle)
	return nil
}

// Remove opens a name with the rights to remove it and to clear a read-only attribute. If the
// latter are denied, DELETE alone must do: a right to delete children grants no other access
// to the entry, not even SYNCHRONIZE.
func (d directory) Remove(_ context.Context, name string) error {
	handle, err := d.at(name, openOptions{access: windows.DELETE | windows.FILE_READ_ATTRIBUTES | windows.FILE_WRITE_ATTRIBUTES})
	if winerr.CodeOf(err) == winerr.AccessDenied {
		handle, err = d.at(name, openOptions{access: windows.DELETE})
	}
	if err != nil {
		return err
	}
	defer windows.CloseHandle(handle)
	return remove(handle)
}
