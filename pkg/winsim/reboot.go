package winsim

import (
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// Reboot restarts the node:
//
//   - SMB mappings are gone. Persistent ones are listed as disconnected and have lost their
//     credentials: their shares cannot be opened, and mapping them again fails with
//     ERROR_SESSION_CREDENTIAL_CONFLICT (1219).
//   - iSCSI sessions and their disks are gone, except for persistent logins. Their disks can
//     have other numbers.
//   - Automatic services and their dependencies run.
//
// Disks, volumes and files, including links, do not change.
//
// Hosts created before the restart have outdated caches. Create new ones.
func (n *Node) Reboot() {
	defer n.lock()()
	n.changed()
	n.network.restart()
	n.initiator.endSessions()
	n.initiator.boot()
	n.services.restart()
	n.smbHost, n.iscsiHost = smbapi.NewOn(n), iscsiapi.NewOn(n)
}
