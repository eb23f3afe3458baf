package winsim

// MirrorDrivesAt is MirrorDrives with real directories elsewhere, for machines without
// drives.
func (n *Node) MirrorDrivesAt(dirs []string, report func(error), locate func(string) string) (func(), error) {
	return n.mirrorDrives(dirs, report, locate)
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
