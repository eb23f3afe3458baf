package api

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var errEnough = errors.New("the listing has ended")

// ListDirectory reads names, and the targets of links, but opens nothing that it lists.
func (b boundHost) ListDirectory(path string, limit int) (entries []DirectoryEntry, more bool, err error) {
	ctx, h := b.ctx, b.host
	const op = "list"
	err = h.files.List(ctx, op, path, func(dir win.Tree, batch []win.DirEntry) error {
		for _, entry := range batch {
			if len(entries) == limit {
				return errEnough
			}
			found, err := describe(ctx, dir, entry)
			if err != nil {
				return err
			}
			entries = append(entries, found)
		}
		return ctx.Err()
	})
	switch {
	case errors.Is(err, errEnough):
		more = true
	case winerr.CodeOf(err) == winerr.Directory:
		return nil, false, winerr.As(winerr.InUse, op, path, err, "it is a file, a link or a mounted folder; list the directory that has it")
	case err != nil:
		return nil, false, winerr.Wrap(op, path, err)
	}
	slices.SortFunc(entries, func(a, b DirectoryEntry) int { return cmp.Compare(a.Name, b.Name) })
	return entries, more, nil
}

func describe(ctx context.Context, dir win.Tree, entry win.DirEntry) (DirectoryEntry, error) {
	found := DirectoryEntry{Name: entry.Name, Type: FileEntry}
	switch {
	case entry.Tag == win.TagSymlink, entry.Tag == win.TagMountPoint:
		found.Type = OtherEntry
	case entry.Tag.NameSurrogate():
		found.Type = OtherEntry
		return found, nil
	case entry.Directory:
		found.Type = SubdirectoryEntry
		return found, nil
	default:
		return found, nil
	}
	point, err := dir.ReparsePoint(ctx, entry.Name)
	if err != nil { // it has changed, or cannot be read
		return found, ctx.Err()
	}
	if volume, mounted := point.MountedVolume(); mounted {
		found.Type, found.Target = MountEntry, volume
	} else {
		found.Type, found.Target = LinkEntry, point.Target()
	}
	return found, nil
}
