package winsim

// MirrorDrivesAt is MirrorDrives with real directories elsewhere, for machines without
// drives.
func (n *Node) MirrorDrivesAt(dirs []string, report func(error), locate func(string) string) (func(), error) {
	return n.mirrorDrives(dirs, report, locate)
}
