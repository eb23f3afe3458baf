package local

import (
	"context"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

const (
	shareAll = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	// Directories can only be opened with backup semantics; the second flag keeps
	// Windows from following a link in the last component.
	openItself = windows.FILE_FLAG_BACKUP_SEMANTICS | windows.FILE_FLAG_OPEN_REPARSE_POINT
)

// open opens a path as https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew
// describes, in its long form. The caller closes the handle.
func open(path string, access, flags uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return 0, winerr.InvalidName
	}
	handle, err := windows.CreateFile(name, access, shareAll, nil, windows.OPEN_EXISTING, flags, 0)
	return handle, winapi.Error(err)
}

func (machine) FileInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return opened(ctx, path, windows.FILE_READ_ATTRIBUTES, openItself, fileInfo)
}

func (machine) TargetInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return opened(ctx, path, windows.FILE_READ_ATTRIBUTES, windows.FILE_FLAG_BACKUP_SEMANTICS, fileInfo)
}

func (machine) ReparsePoint(ctx context.Context, path string) (win.ReparsePoint, error) {
	return opened(ctx, path, windows.FILE_READ_ATTRIBUTES, openItself, reparsePoint)
}

// opened opens a path, asks the handle and closes it.
func opened[T any](ctx context.Context, path string, access, flags uint32, ask func(windows.Handle) (T, error)) (T, error) {
	return within(ctx, reachFile, path, func() (T, error) {
		handle, err := open(path, access, flags)
		if err != nil {
			var none T
			return none, err
		}
		defer windows.CloseHandle(handle)
		return ask(handle)
	})
}

func (machine) ListDirectory(ctx context.Context, path string, each func(win.Tree, []win.DirEntry) error) error {
	return stream(ctx, reachFile, path, func(yield func(batch) bool) error {
		handle, err := open(path, listAccess, openItself)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(handle)
		return list(handle, yield)
	}, func(b batch) error { return each(b.dir, b.entries) })
}

func (machine) CreateDirectory(ctx context.Context, path string) error {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return winerr.InvalidName
	}
	return act(ctx, reachFile, path, func() error { return winapi.Error(windows.CreateDirectory(name, nil)) })
}

func (machine) CreateDirectoryLink(ctx context.Context, path, target string) error {
	name, err := windows.UTF16PtrFromString(winpath.Long(path))
	if err != nil {
		return winerr.InvalidName
	}
	leadsTo, err := windows.UTF16PtrFromString(target)
	if err != nil {
		return winerr.InvalidName
	}
	return act(ctx, reachFile, path, func() error {
		return winapi.Error(windows.CreateSymbolicLink(name, leadsTo, windows.SYMBOLIC_LINK_FLAG_DIRECTORY))
	})
}

func (machine) Remove(ctx context.Context, path string) error {
	return act(ctx, reachFile, path, func() error {
		return openToRemove(func(access uint32) (windows.Handle, error) { return open(path, access, openItself) })
	})
}
