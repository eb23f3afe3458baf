package local

import (
	"context"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// askPath opens what a path names, asks the handle and closes it.
func askPath[T any](path win.Path, ask func(windows.Handle) (T, error)) (T, error) {
	handle, err := openPath(path, look)
	if err != nil {
		var none T
		return none, err
	}
	defer windows.CloseHandle(handle)
	return ask(handle)
}

func (machine) FileInfo(_ context.Context, path win.Path) (win.FileInfo, error) {
	return askPath(path, fileInfo)
}

// TargetInfo opens the volume of a mounted folder by its id, not through the folder, which
// may have changed since.
func (machine) TargetInfo(_ context.Context, path win.Path) (win.FileInfo, error) {
	at, err := askPath(path, target)
	if err != nil || at.volume == "" {
		return at.info, err
	}
	info, err := askPath(win.Following(at.volume), fileInfo)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		// To the kernel the volume is a directory on the way to its root.
		return win.FileInfo{}, winerr.FileNotFound
	}
	return info, err
}

// PathSpace asks about the base once it is clear that no link lies between that and the directory:
// then both are on one file system. The function has no variant for handles.
func (machine) PathSpace(_ context.Context, path win.Path) (win.Space, error) {
	info, err := askPath(path, fileInfo)
	switch {
	case err != nil:
		return win.Space{}, err
	case info.Tag.NameSurrogate():
		return win.Space{}, winerr.ReparsePointEncounter
	case !info.Directory:
		return win.Space{}, winerr.Directory
	}
	total, available, _, err := winapi.DiskSpace(strings.TrimSuffix(winpath.Long(path.Base), winpath.Separator) + winpath.Separator)
	if err != nil {
		return win.Space{}, err
	}
	return space(total, available)
}

// mounted is a file, or a volume that is shown in its place.
type mounted struct {
	info   win.FileInfo
	volume string
}

func target(handle windows.Handle) (mounted, error) {
	info, err := fileInfo(handle)
	if err != nil || !info.Tag.NameSurrogate() {
		return mounted{info: info}, err
	}
	if info.Tag != win.TagMountPoint {
		return mounted{}, winerr.ReparsePointEncounter
	}
	point, err := reparsePoint(handle)
	if err != nil {
		return mounted{}, err
	}
	id, ok := point.MountedVolume()
	if !ok {
		return mounted{}, winerr.ReparsePointEncounter
	}
	return mounted{volume: id}, nil
}

func (machine) Location(_ context.Context, path win.Path) (string, error) {
	return askPath(path, winapi.FinalPath)
}

func (machine) ReparsePoint(_ context.Context, path win.Path) (win.ReparsePoint, error) {
	return askPath(path, reparsePoint)
}

func (machine) CreateDirectory(_ context.Context, path win.Path) error {
	handle, err := openBelow(path, makingDirectory)
	if err != nil {
		return err
	}
	windows.CloseHandle(handle)
	return nil
}

func (machine) OpenDirectory(_ context.Context, path win.Path) (win.Directory, error) {
	handle, err := openPath(path, look)
	dir, err := openDirectory(handle, err, isDirectory)
	if err != nil {
		return nil, err
	}
	return dir, nil
}
