package winsim

import (
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Tests arrange and inspect the iSCSI initiator and its servers with the methods below. They do
// not count as calls, and faults do not affect them.

// AddISCSITarget adds a target to the servers. Windows sees it at the next discovery.
func (n *Node) AddISCSITarget(target ISCSITarget) error {
	n.lock()
	defer n.mu.Unlock()
	if err := n.initiator.addTarget(target, nil); err != nil {
		return err
	}
	n.changed()
	return nil
}

// SetISCSIPortalDown makes a portal such as 10.0.0.10:3260 unreachable or reachable. Its
// sessions lose and regain their connection.
func (n *Node) SetISCSIPortalDown(portal string, down bool) error {
	n.lock()
	defer n.mu.Unlock()
	p := findPortal(n.initiator.portals, portal)
	if p == nil {
		return winerr.New(winerr.NotFound, "set state of portal", portal, "portal not found")
	}
	n.changed()
	p.down = down
	return nil
}

// HoldISCSITarget keeps the disks of a target open. Until release is called, a logout fails
// with ISDSC_DEVICE_BUSY_ON_SESSION (0xefff0040). Releasing twice is harmless.
func (n *Node) HoldISCSITarget(iqn string) (release func(), err error) {
	n.lock()
	defer n.mu.Unlock()
	t := n.initiator.target(iqn)
	if t == nil {
		return nil, winerr.New(winerr.NotFound, "hold target", iqn, "target not found")
	}
	t.held++
	return sync.OnceFunc(func() {
		n.lock()
		defer n.mu.Unlock()
		t.held--
	}), nil
}

// ISCSISessionInfo is a snapshot of a session.
type ISCSISessionInfo struct {
	Target    string
	Portal    string // such as 10.0.0.10:3260
	Connected bool
	Disks     []uint32 // numbers of those that have appeared, by LUN
}

// ISCSISessions lists the sessions, oldest first.
func (n *Node) ISCSISessions() []ISCSISessionInfo {
	n.lock()
	defer n.mu.Unlock()
	var sessions []ISCSISessionInfo
	for _, s := range n.initiator.sessions {
		info := ISCSISessionInfo{Target: s.target.iqn, Portal: s.portal.String(), Connected: !s.portal.down}
		for _, d := range s.target.luns {
			if n.disks.shows(d) {
				info.Disks = append(info.Disks, d.Number)
			}
		}
		sessions = append(sessions, info)
	}
	return sessions
}

// ISCSILogins lists the persistent logins.
func (n *Node) ISCSILogins() []ISCSILogin {
	n.lock()
	defer n.mu.Unlock()
	return n.initiator.describeLogins()
}

func (in *initiator) describeLogins() (logins []ISCSILogin) {
	for _, login := range in.logins {
		logins = append(logins, ISCSILogin{Target: login.Target, Portal: login.Portal.String()})
	}
	return logins
}
