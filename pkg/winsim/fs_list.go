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

// ListDirectory lists a directory in batches. Entries added after the opening or removed before
// their batch are not listed; NTFS guarantees neither.
func (d directory) ListDirectory(ctx context.Context, name string, each func(win.Tree, []win.DirEntry) error) error {
	listed, keys, err := d.list(name)
	if err != nil {
		return err
	}
	defer listed.endList()
	for batch := range slices.Chunk(keys, listBatch) {
		if err := ctx.Err(); err != nil {
			return err
		}
		entries, err := listed.describe(batch)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			continue
		}
		if err := each(listed, entries); err != nil {
			return err
		}
	}
	return nil
}

// list opens a directory for listing and returns the keys of its entries in NTFS order. It
// keeps only the keys, because a directory can be very large.
func (d directory) list(name string) (listed directory, keys []string, err error) {
	err = d.onExisting(name, func(at resolvedPath) error {
		if at.entry.children == nil || isLink(at.entry) {
			return winerr.Directory
		}
		d.files.observe("ListDirectory", at, false)
		at.fs.refresh(at.entry)
		keys = slices.AppendSeq(make([]string, 0, len(at.entry.children)), maps.Keys(at.entry.children))
		slices.Sort(keys)
		listed = directory{files: d.files, opened: at, closed: new(bool)}
		return nil
	})
	return listed, keys, err
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

func (d directory) endList() {
	defer d.files.lock()()
	*d.closed = true
}
