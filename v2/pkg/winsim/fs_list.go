package winsim

import (
	"context"
	"maps"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// listBatch is the number of entries in a batch, about what fits into 64 KiB on Windows.
const listBatch = 256

// listing lists a directory in batches. Entries added after the opening or removed before
// their batch are not listed; NTFS guarantees neither.
type listing struct {
	directory
	keys []string // of the entries that are left, in NTFS order; not the entries, because a directory can be very large
}

func (d directory) ListDirectory(_ context.Context, name string) (win.Listing, error) {
	l := &listing{}
	err := d.onExisting(name, func(at resolvedPath) error {
		if at.entry.children == nil || isLink(at.entry) {
			return winerr.Directory
		}
		d.files.observe("ListDirectory", at, false)
		at.fs.refresh(at.entry)
		l.keys = slices.AppendSeq(make([]string, 0, len(at.entry.children)), maps.Keys(at.entry.children))
		slices.Sort(l.keys)
		d.files.openDirectories++
		l.directory = directory{files: d.files, opened: at, closed: new(bool)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *listing) Next(context.Context) ([]win.DirEntry, error) {
	for len(l.keys) > 0 {
		batch := l.keys[:min(listBatch, len(l.keys))]
		l.keys = l.keys[len(batch):]
		if entries, err := l.describe(batch); err != nil || len(entries) > 0 {
			return entries, err
		}
	}
	return nil, nil
}

func (d directory) describe(keys []string) ([]win.DirEntry, error) {
	defer d.files.lock()()
	if err := d.usable(); err != nil {
		return nil, err
	}
	entries := make([]win.DirEntry, 0, len(keys))
	for _, key := range keys {
		if child := d.opened.entry.children[key]; child != nil {
			entries = append(entries, win.DirEntry{Name: child.name, FileInfo: child.info()})
		}
	}
	return entries, nil
}
