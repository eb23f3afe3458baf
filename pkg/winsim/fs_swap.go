package winsim

import (
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// errNotSameDevice is ERROR_NOT_SAME_DEVICE.
const errNotSameDevice winerr.Code = 17

// Swap lets two files, directories or links of a volume change names, in one step. It is
// how an attacker replaces a directory that was looked at by a link prepared for it; a
// second Swap undoes it. Who has one of them open keeps it open. In Fault.Do it happens
// between two calls of an operation.
func (n *Node) Swap(path, other string) error {
	const op = "swap"
	n.lock()
	defer n.mu.Unlock()
	a, err := n.locate(op, path)
	if err != nil {
		return err
	}
	b, err := n.locate(op, other)
	if err != nil {
		return err
	}
	switch {
	case a.parent == nil || b.parent == nil || a.entry.isStream || b.entry.isStream:
		err = winerr.AccessDenied
	case a.volume != b.volume:
		err = errNotSameDevice
	case a.entry.within(b.entry) || b.entry.within(a.entry):
		err = winerr.SharingViolation // nothing can be moved into itself
	}
	if err != nil {
		return winerr.Wrap(op, path, err)
	}
	n.changed()
	a.swap(b)
	return nil
}

// SwapForLink is Swap with a new symbolic link to target: it takes the place of what stood
// at path, which is found beside it afterwards, under the path that is returned. For a link
// of another kind, make one and call Swap.
func (n *Node) SwapForLink(path, target string) (old string, err error) {
	const op = "swap"
	n.lock()
	defer n.mu.Unlock()
	at, err := n.locate(op, path)
	switch {
	case err != nil:
		return "", err
	case at.parent == nil || at.entry.isStream:
		return "", winerr.Wrap(op, path, winerr.AccessDenied)
	}
	link := newLink(symlinkTo(target))
	beside, err := at.lookUp(at.parent, at.entry.name+".swapped", true)
	switch {
	case err == nil && beside.entry != nil:
		err = winerr.AlreadyExists
	case err == nil:
		err = link.link.checkFits(at.fs)
	}
	if err != nil {
		return "", winerr.Wrap(op, path, err)
	}
	beside.entry = link
	n.changed()
	beside.add(link)
	at.swap(beside)
	return displayPath(at.volume, at.entry), nil
}

// swap lets two entries change names. Each gets the name that the other one had, and
// a new short name for it, as with any renaming.
func (at resolvedPath) swap(other resolvedPath) {
	at.name, other.name = at.entry.name, other.entry.name
	renamed := at.fs.swapReal(at.entry, other.entry)
	at.detach()
	other.detach()
	at.attach(other.entry)
	other.attach(at.entry)
	renamed()
}

// within reports whether it is another entry or in it.
func (e *entry) within(dir *entry) bool {
	for ; e != nil; e = e.parent {
		if e == dir {
			return true
		}
	}
	return false
}
