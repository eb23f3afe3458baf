package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// files is the view of all volumes and shares by path.
type files struct {
	*clock
	volumes *volumes
	network *network

	started         bool    // the files of the model exist
	mirror          *mirror // nil if not mirrored
	openDirectories int
	observers       []func(Touch)
}

// The methods below implement the seam; internal/win documents them.

func (t *files) FileInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	return readPath(ctx, t, "FileInfo", path, resolvedPath.info)
}

// TargetInfo is FileInfo that follows mounted folders.
func (t *files) TargetInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	return readPath(ctx, t, "TargetInfo", path, func(at resolvedPath) (win.FileInfo, error) {
		switch {
		case !isLink(at.entry):
			return at.entry.info(), nil
		case at.entry.link.Tag != win.TagMountPoint:
			return win.FileInfo{}, winerr.ReparsePointEncounter
		}
		point, err := at.entry.link.read()
		if err != nil {
			return win.FileInfo{}, err
		}
		id, mounted := point.MountedVolume()
		if !mounted {
			return win.FileInfo{}, winerr.ReparsePointEncounter
		}
		shown, err := t.walkExisting(id, true)
		switch {
		case winerr.CodeOf(err) == winerr.PathNotFound: // an unknown volume
			return win.FileInfo{}, winerr.FileNotFound
		case err != nil:
			return win.FileInfo{}, err
		}
		t.observe("TargetInfo", shown, false)
		return shown.entry.info(), nil
	})
}

// PathSpace returns size and free space of the volume or share that a directory is on.
func (t *files) PathSpace(ctx context.Context, path win.Path) (win.Space, error) {
	return readPath(ctx, t, "PathSpace", path, func(at resolvedPath) (win.Space, error) {
		switch {
		case isLink(at.entry):
			return win.Space{}, winerr.ReparsePointEncounter
		case !at.entry.info().Directory:
			return win.Space{}, winerr.Directory
		}
		return at.fs.space(), nil
	})
}

func (t *files) ReparsePoint(ctx context.Context, path win.Path) (win.ReparsePoint, error) {
	return readPath(ctx, t, "ReparsePoint", path, resolvedPath.reparsePoint)
}

func (t *files) Location(ctx context.Context, path win.Path) (string, error) {
	return readPath(ctx, t, "Location", path, resolvedPath.location)
}

func (at resolvedPath) info() (win.FileInfo, error) { return at.entry.info(), nil }

func (at resolvedPath) reparsePoint() (win.ReparsePoint, error) { return at.entry.link.read() }

func (at resolvedPath) location() (string, error) {
	if at.volume.share != nil {
		return "", winerr.PathNotFound
	}
	return pathFrom(string(at.volume.id()), at.entry), nil
}

func (t *files) CreateDirectory(ctx context.Context, path win.Path) error {
	const call = "CreateDirectory"
	return t.onPath(ctx, call, path, func(at resolvedPath) error {
		if path.Rest == "" {
			return winerr.InvalidName
		}
		return t.createEntry(call, at, newDirectory())
	})
}

// OpenDirectory opens a directory. It stays open when its path changes.
func (t *files) OpenDirectory(ctx context.Context, path win.Path) (win.Directory, error) {
	return readPath(ctx, t, "OpenDirectory", path, t.openDirectory)
}

func readPath[T any](ctx context.Context, t *files, call string, path win.Path, ask func(resolvedPath) (T, error)) (result T, err error) {
	err = t.onPath(ctx, call, path, func(at resolvedPath) (err error) {
		if at.entry == nil {
			return winerr.FileNotFound
		}
		t.observe(call, at, false)
		result, err = ask(at)
		return err
	})
	return result, err
}

// onPath runs a call about a path whose last name may be missing.
func (t *files) onPath(ctx context.Context, call string, path win.Path, do func(resolvedPath) error) error {
	if err := t.network.awaitServer(ctx, path.Base); err != nil {
		return err
	}
	defer t.lock()()
	at, err := t.resolve(call, path)
	if err != nil {
		return err
	}
	return do(at)
}
