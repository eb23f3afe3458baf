package winsim

import (
	"bytes"
	"fmt"
	"time"
)

// OpenWithin is Open with another limit for programs that have the file open.
func OpenWithin(model Model, path string, failed func(error), readers time.Duration) (*Node, func(), error) {
	return open(model, path, failed, readers)
}

// MirrorDrivesAt is MirrorDrives with real directories elsewhere, for machines without
// drives.
func (n *Node) MirrorDrivesAt(dirs []string, report func(error), locate func(string) string) (func(), error) {
	return n.mirrorDrives(dirs, report, locate)
}

// ProveChanges reports accesses that change what Model describes without saying so: such a change
// would be lost with the process.
func (n *Node) ProveChanges(report func(error)) {
	defer n.lock()()
	before, err := n.encode()
	if err != nil {
		report(err)
	}
	n.mu.beforeUnlock = func() {
		after, err := n.encode()
		switch {
		case err != nil: // other tests are about what cannot be saved
		case !n.mu.dirty && !bytes.Equal(before, after):
			report(fmt.Errorf("a change that was not marked as one:\n%s\n%s", before, after))
		}
		before = after
	}
}

// ShortName is the 8.3 name of a file; empty if it has none.
func (n *Node) ShortName(path string) (string, error) {
	defer n.lock()()
	at, err := n.files.locate("read the short name of", path)
	if err != nil {
		return "", err
	}
	return at.entry.shortName, nil
}
