package winsim

import (
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// Reboot restarts the node. SMB mappings are gone, or stay without credentials if they are persistent. iSCSI sessions and
// their disks are gone, except those of persistent logins, whose disks can have other numbers. Automatic services run.
// Disks, volumes, files and links stay. Requests that a disk or a fault holds end without effect. Create hosts again: those from before have outdated caches.
func (n *Node) Reboot() {
	defer n.lock()()
	close(n.restarted)
	n.restarted = make(chan struct{})
	n.network.restart()
	n.initiator.endSessions()
	n.initiator.boot()
	clear(n.volumes.formatLocks)
	n.services.restart()
	n.smbHost, n.iscsiHost = smbapi.NewOn(n), iscsiapi.NewOn(n)
}
