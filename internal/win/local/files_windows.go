package local

import (
	"context"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// askPath opens what a path names, asks the handle and closes it.
func askPath[T any](ctx context.Context, path win.Path, ask func(windows.Handle) (T, error)) (T, error) {
	return within(ctx, reachFile, path.String(), func() (T, error) { return opened(path, ask) })
}

func opened[T any](path win.Path, ask func(windows.Handle) (T, error)) (T, error) {
	handle, err := openPath(path, look)
	if err != nil {
		var none T
		return none, err
	}
	defer windows.CloseHandle(handle)
	return ask(handle)
}

func (machine) FileInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	return askPath(ctx, path, fileInfo)
}

func (machine) TargetInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	return askPath(ctx, path, targetInfo)
}

// targetInfo opens the volume of a mounted folder by its id, not through the folder, which
// could lead elsewhere by now.
func targetInfo(handle windows.Handle) (win.FileInfo, error) {
	info, err := fileInfo(handle)
	if err != nil || !info.Tag.NameSurrogate() {
		return info, err
	}
	if info.Tag != win.TagMountPoint {
		return win.FileInfo{}, winerr.ReparsePointEncounter
	}
	point, err := reparsePoint(handle)
	if err != nil {
		return win.FileInfo{}, err
	}
	id, ok := point.MountedVolume()
	if !ok {
		return win.FileInfo{}, winerr.ReparsePointEncounter
	}
	info, err = opened(win.Following(id), fileInfo)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		// To the kernel the volume is a directory on the way to its root.
		return win.FileInfo{}, winerr.FileNotFound
	}
	return info, err
}

func (machine) ReparsePoint(ctx context.Context, path win.Path) (win.ReparsePoint, error) {
	return askPath(ctx, path, reparsePoint)
}

func (machine) OpenDirectory(ctx context.Context, path win.Path) (win.Directory, error) {
	dir, err := openDirectory(ctx, path.String(), func() (windows.Handle, error) { return openPath(path, look) }, isDirectory)
	if err != nil {
		return nil, err
	}
	return dir, nil
}
