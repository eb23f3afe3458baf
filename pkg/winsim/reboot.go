package winsim

import smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"

// Reboot restarts the node as far as that shows in what this package emulates: mappings of
// shares are still listed, but as disconnected and without their credentials, so that the
// shares cannot be opened, and mapping them again fails with 1219. Disks, volumes and files,
// links among them, are what they were.
//
// Programs end with their machine: hosts that were made before know what they should have
// forgotten. Make new ones.
func (n *Node) Reboot() {
	n.lock()
	defer n.mu.Unlock()
	for _, m := range n.network.mappings {
		m.stale, m.password = true, ""
	}
	n.smbHost = smbapi.NewOn(n)
}
