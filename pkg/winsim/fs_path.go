package winsim

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The methods below implement the seam; internal/win documents them.

// FileInfo describes the entry at a path.
func (n storage) FileInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	return readPath(ctx, n.Node, "FileInfo", path, resolvedPath.info)
}

// TargetInfo is FileInfo that follows mounted folders.
func (n storage) TargetInfo(ctx context.Context, path win.Path) (win.FileInfo, error) {
	return readPath(ctx, n.Node, "TargetInfo", path, func(at resolvedPath) (win.FileInfo, error) {
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
		shown, err := n.walkExisting(id, true)
		switch {
		case winerr.CodeOf(err) == winerr.PathNotFound: // an unknown volume
			return win.FileInfo{}, winerr.FileNotFound
		case err != nil:
			return win.FileInfo{}, err
		}
		n.observe("TargetInfo", shown, false)
		return shown.entry.info(), nil
	})
}

// PathSpace returns size and free space of the volume or share that a directory is on.
func (n storage) PathSpace(ctx context.Context, path win.Path) (win.Space, error) {
	return readPath(ctx, n.Node, "PathSpace", path, func(at resolvedPath) (win.Space, error) {
		switch {
		case isLink(at.entry):
			return win.Space{}, winerr.ReparsePointEncounter
		case !at.entry.info().Directory:
			return win.Space{}, winerr.Directory
		}
		return at.fs.space(), nil
	})
}

// ReparsePoint reads a link.
func (n storage) ReparsePoint(ctx context.Context, path win.Path) (win.ReparsePoint, error) {
	return readPath(ctx, n.Node, "ReparsePoint", path, resolvedPath.reparsePoint)
}

// Location returns the real path of a file.
func (n storage) Location(ctx context.Context, path win.Path) (string, error) {
	return readPath(ctx, n.Node, "Location", path, resolvedPath.location)
}

func (at resolvedPath) info() (win.FileInfo, error) { return at.entry.info(), nil }

func (at resolvedPath) reparsePoint() (win.ReparsePoint, error) { return at.entry.file().link.read() }

func (at resolvedPath) location() (string, error) {
	if at.volume.share != nil {
		return "", winerr.PathNotFound
	}
	return pathFrom(string(at.volume.id()), at.entry), nil
}

// CreateDirectory creates one directory.
func (n storage) CreateDirectory(ctx context.Context, path win.Path) error {
	const call = "CreateDirectory"
	at, err := n.lookUp(ctx, call, path)
	if err != nil {
		return err
	}
	defer n.mu.Unlock()
	if path.Rest == "" {
		return winerr.InvalidName
	}
	return n.createEntry(call, at, newDirectory())
}

// OpenDirectory opens a directory. It stays open when its path changes.
func (n storage) OpenDirectory(ctx context.Context, path win.Path) (win.Directory, error) {
	return readPath(ctx, n.Node, "OpenDirectory", path, n.openDirectory)
}

// readPath resolves a path for a call that only reads.
func readPath[T any](ctx context.Context, n *Node, call string, path win.Path, read func(resolvedPath) (T, error)) (T, error) {
	var none T
	at, err := n.lookUp(ctx, call, path)
	if err != nil {
		return none, err
	}
	defer n.mu.Unlock()
	if at.entry == nil {
		return none, winerr.FileNotFound
	}
	n.observe(call, at, false)
	return read(at)
}

// lookUp resolves a path whose last name may be missing. Without an error, the caller
// unlocks the node.
func (n *Node) lookUp(ctx context.Context, call string, path win.Path) (resolvedPath, error) {
	if err := n.network.awaitServer(ctx, path.Base); err != nil {
		return resolvedPath{}, err
	}
	n.lock()
	at, err := n.resolve(call, path)
	if err != nil {
		n.mu.Unlock()
	}
	return at, err
}
