package winsim

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// The methods below are the seam's; their contract stands in internal/win.

// FileInfo describes a name without following a link there.
func (n *Node) FileInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return n.info(ctx, "FileInfo", path, false)
}

// TargetInfo describes what a path leads to.
func (n *Node) TargetInfo(ctx context.Context, path string) (win.FileInfo, error) {
	return n.info(ctx, "TargetInfo", path, true)
}

func (n *Node) info(ctx context.Context, call, path string, follow bool) (win.FileInfo, error) {
	if err := n.enter(ctx, call, path); err != nil {
		return win.FileInfo{}, err
	}
	n.lock()
	defer n.mu.Unlock()
	at, err := n.existing(path, follow)
	if err != nil {
		return win.FileInfo{}, err
	}
	return at.entry.info(), nil
}

// ReparsePoint reads a link.
func (n *Node) ReparsePoint(ctx context.Context, path string) (win.ReparsePoint, error) {
	return n.directory().ReparsePoint(ctx, path)
}

// ListDirectory lists a directory in batches. Opening it counts as one call, and so
// does each batch. Changes made after the opening are not seen; NTFS leaves that open.
func (n *Node) ListDirectory(ctx context.Context, path string, each func(win.Tree, []win.DirEntry) error) error {
	return n.directory().ListDirectory(ctx, path, each)
}

// Remove deletes one name.
func (n *Node) Remove(ctx context.Context, path string) error {
	return n.directory().Remove(ctx, path)
}

// DeleteMountPoint dismantles a mounted folder and leaves an empty directory.
func (n *Node) DeleteMountPoint(ctx context.Context, path string) error {
	return n.directory().DeleteMountPoint(ctx, path)
}

// CreateDirectory makes one directory.
func (n *Node) CreateDirectory(ctx context.Context, path string) error {
	if err := n.enter(ctx, "CreateDirectory", path); err != nil {
		return err
	}
	n.lock()
	defer n.mu.Unlock()
	at, err := n.vacant(path)
	if err != nil {
		return err
	}
	at.add(newDirectory())
	return nil
}

// CreateDirectoryLink makes a directory symbolic link.
func (n *Node) CreateDirectoryLink(ctx context.Context, path, target string) error {
	if err := n.enter(ctx, "CreateDirectoryLink", path); err != nil {
		return err
	}
	n.lock()
	defer n.mu.Unlock()
	at, err := n.vacant(path)
	if err != nil {
		return err
	}
	at.add(newLink(symlinkTo(target)))
	return nil
}

func newLink(link win.ReparsePoint) *entry {
	e := newDirectory()
	e.link = &link
	return e
}

// symlinkTo stores a target as CreateSymbolicLinkW does: one with a drive is made
// absolute and loses its dots, one without stays as it is.
func symlinkTo(target string) win.ReparsePoint {
	link := win.ReparsePoint{Tag: win.TagSymlink, Print: target}
	switch {
	case strings.HasPrefix(target, `\\?\`):
		link.Substitute = `\??\` + target[4:]
	case strings.HasPrefix(target, `\\`):
		link.Substitute = `\??\UNC\` + target[2:]
	case len(target) >= 2 && target[1] == ':':
		link.Substitute = `\??\` + target[:2] + withoutDots(target[2:])
	default:
		link.Substitute, link.Relative = target, true
	}
	return link
}

// withoutDots resolves "." and ".." in a path by its spelling.
func withoutDots(path string) string {
	if !strings.Contains(path, ".") {
		return path
	}
	var names []string
	for name := range strings.SplitSeq(path, `\`) {
		switch name {
		case ".":
		case "..":
			names = names[:max(min(1, len(names)), len(names)-1)]
		default:
			names = append(names, name)
		}
	}
	return strings.Join(names, `\`)
}
