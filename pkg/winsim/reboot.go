package winsim

import (
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// Reboot restarts the node:
//
//   - Mappings of shares are still listed, but as disconnected and without their credentials, so
//     that the shares cannot be opened, and mapping them again fails with 1219.
//   - iSCSI sessions are gone, and their disks with them, except for those that Windows logs in
//     to when it starts. Disks that come back can have other numbers.
//   - Those services run that Windows starts by itself, and what they depend on.
//
// Disks, volumes and files, including links, do not change.
//
// Hosts created before the restart have outdated caches. Create new ones.
func (n *Node) Reboot() {
	n.lock()
	defer n.mu.Unlock()
	n.changed()
	for _, m := range n.network.mappings {
		m.stale, m.password = true, ""
	}
	n.endISCSISessions()
	n.bootISCSI()
	n.restartServices()
	n.smbHost, n.iscsiHost = smbapi.NewOn(n), iscsiapi.NewOn(n)
}

// endISCSISessions ends all sessions, even if their disks are open.
func (n *Node) endISCSISessions() {
	n.iscsi.sessions = nil
	for _, t := range n.iscsi.targets {
		n.unplugLUNs(t)
	}
}

// restartServices brings all services into their state after a start.
func (n *Node) restartServices() {
	for _, s := range n.services.all {
		s.state, s.launched, s.exit, s.specific = "", false, 0, 0
		s.changes++ // what was planned does not happen
	}
	n.services.runAtStart()
}
