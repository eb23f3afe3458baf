package winsim

import (
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Codes that only swaps answer: ERROR_NOT_SAME_DEVICE and ERROR_REPARSE_TAG_MISMATCH.
const (
	errNotSameDevice      winerr.Code = 17
	errReparseTagMismatch winerr.Code = 4394
)

// Swap exchanges the names of two files, directories or links of a volume in one step, as an attacker does in Fault.Do,
// between two calls of an operation. Open handles stay open. A mirrored node refuses it.
func (n *Node) Swap(path, other string) error {
	const op = "swap"
	defer n.lock()()
	a, err := n.files.locate(op, path)
	if err != nil {
		return err
	}
	b, err := n.files.locate(op, other)
	if err != nil {
		return err
	}
	switch {
	case a.parent == nil || b.parent == nil, a.fs.mirrored != nil:
		err = winerr.AccessDenied
	case a.volume != b.volume:
		err = errNotSameDevice
	case a.entry.within(b.entry) || b.entry.within(a.entry):
		err = winerr.SharingViolation // nothing can be moved into itself
	}
	if err != nil {
		return winerr.Wrap(op, path, err)
	}
	a.name, b.name = a.entry.name, b.entry.name
	a.detach()
	b.detach()
	a.attach(b.entry) // each gets a new short name, as in any rename
	b.attach(a.entry)
	return nil
}

// TurnIntoJunction makes an empty directory or mounted folder a junction without replacing it, so open handles become
// handles to the junction. An open relative to such a handle fails with answer: 2, 123, 161 or 1921 (Wine's
// dlls/ntdll/tests/file.c). With 0 it succeeds in the directory itself, where no path leads any more.
func (n *Node) TurnIntoJunction(path, target string, answer uint32) error {
	const op = "turn into a junction"
	defer n.lock()()
	f := File{Path: path, Junction: target}
	if err := f.validate(n.hasVolume); err != nil || target == "" {
		return winerr.New(winerr.Invalid, op, path, "the target %q is not an absolute path", target)
	}
	at, err := n.files.locate(op, path)
	switch {
	case err != nil:
		return err
	case at.parent == nil:
		err = winerr.AccessDenied
	case at.entry.children == nil:
		err = winerr.Directory
	case len(at.entry.children) > 0:
		err = winerr.DirNotEmpty
	case at.entry.link != nil && at.entry.link.Tag != win.TagMountPoint:
		err = errReparseTagMismatch
	}
	if err != nil {
		return winerr.Wrap(op, path, err)
	}
	at.entry.link, at.entry.changedAt = f.entry().link, n.date()
	at.entry.link.toOlder = winerr.Code(answer)
	at.fs.rewrite(at.entry)
	return nil
}

func (e *entry) within(dir *entry) bool {
	for ; e != nil; e = e.parent {
		if e == dir {
			return true
		}
	}
	return false
}
