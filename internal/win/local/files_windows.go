package local

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// askPath opens what a path names, asks the handle and closes it.
func askPath[T any](ctx context.Context, path win.Path, ask func(windows.Handle) (T, error)) (T, error) {
	at := hangsAt(path)
	return within(ctx, at.kind, at.object, func() (T, error) { return opened(path, ask) })
}

// lookAt is askPath for calls that attributes usually answer: ordinary makes the answer from those of
// an ordinary file or directory.
func lookAt[T any](ctx context.Context, path win.Path, ordinary func(win.FileInfo) (T, error), ask func(windows.Handle) (T, error)) (T, error) {
	at := hangsAt(path)
	return within(ctx, at.kind, at.object, func() (T, error) {
		info, err := attributesByPath(path)
		return attributesOr(info, err, ordinary, func() (T, error) { return opened(path, ask) })
	})
}

// attributesOr makes an answer from attributes, or from what open returns if they do not suffice.
func attributesOr[T any](info win.FileInfo, err error, ordinary func(win.FileInfo) (T, error), open func() (T, error)) (T, error) {
	switch {
	case err == nil:
		return ordinary(info)
	case errors.Is(err, errUnsure):
		return open()
	default:
		var none T
		return none, err
	}
}

// hangsAt returns what a call that opens a path can hang on: the server, the volume if the
// path names one, or the path itself. All files of a server count as one object: otherwise a
// dead server would use up the limit of the kind.
func hangsAt(path win.Path) hangPoint {
	if _, ok := win.ParseVolumeID(path.Base); ok {
		return hangPoint{reachVolume, path.Base}
	}
	if rest, ok := strings.CutPrefix(path.Base, `\\`); ok {
		server, _, _ := strings.Cut(rest, winpath.Separator)
		return hangPoint{reachServer, winpath.Fold(server)}
	}
	return hangPoint{reachFile, path.String()}
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
	return lookAt(ctx, path, itself, fileInfo)
}

// TargetInfo opens the volume of a mounted folder by its id, not through the folder, which
// may have changed since.
func (machine) TargetInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	at, err := lookAt(ctx, path, func(info win.FileInfo) (mounted, error) { return mounted{info: info}, nil }, target)
	if err != nil || at.volume == "" {
		return at.info, err
	}
	info, err := askPath(ctx, win.Following(at.volume), fileInfo)
	if winerr.CodeOf(err) == winerr.PathNotFound {
		// To the kernel the volume is a directory on the way to its root.
		return win.FileInfo{}, winerr.FileNotFound
	}
	return info, err
}

// PathSpace asks about the base once it is clear that no link lies between that and the directory:
// then both are on one file system. The function has no variant for handles.
func (machine) PathSpace(ctx context.Context, path win.Path) (win.Space, error) {
	info, err := lookAt(ctx, path, itself, fileInfo)
	switch {
	case err != nil:
		return win.Space{}, err
	case info.Tag.NameSurrogate():
		return win.Space{}, winerr.ReparsePointEncounter
	case !info.Directory:
		return win.Space{}, winerr.Directory
	}
	at := hangsAt(path)
	return within(ctx, at.kind, at.object, func() (win.Space, error) {
		total, available, _, err := winapi.DiskSpace(strings.TrimSuffix(winpath.Long(path.Base), winpath.Separator) + winpath.Separator)
		if err != nil {
			return win.Space{}, err
		}
		return space(total, available)
	})
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

func (machine) Location(ctx context.Context, path win.Path) (string, error) {
	return askPath(ctx, path, winapi.FinalPath)
}

func (machine) ReparsePoint(ctx context.Context, path win.Path) (win.ReparsePoint, error) {
	return lookAt(ctx, path, noLink, reparsePoint)
}

// CreateDirectory opens the base afresh: a change is never made by a handle that was lent.
func (machine) CreateDirectory(ctx context.Context, path win.Path) error {
	at := hangsAt(path)
	return act(ctx, at.kind, at.object, func() error {
		handle, err := openBelow(path, makingDirectory)
		if err != nil {
			return err
		}
		windows.CloseHandle(handle)
		return nil
	})
}

func (machine) OpenDirectory(ctx context.Context, path win.Path) (win.Directory, error) {
	dir, err := openDirectory(ctx, hangsAt(path), func() (windows.Handle, error) { return openPath(path, look) }, isDirectory)
	if err != nil {
		return nil, err
	}
	return dir, nil
}
