package winsim

import (
	"slices"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The methods below are how a test arranges and inspects the iSCSI initiator and the servers
// around it. They are not counted as calls and no fault hits them.

// AddISCSITarget lets a server offer one more target. Windows learns of it when it next asks a
// portal.
func (n *Node) AddISCSITarget(target ISCSITarget) error {
	n.lock()
	defer n.mu.Unlock()
	if err := n.iscsi.addTarget(target); err != nil {
		return err
	}
	n.changed()
	return nil
}

// SetISCSIPortalDown makes a portal, such as 10.0.0.10:3260, unreachable or reachable.
// Sessions through it lose their connection and get it back.
func (n *Node) SetISCSIPortalDown(portal string, down bool) error {
	n.lock()
	defer n.mu.Unlock()
	p := findPortal(n.iscsi.portals, portal)
	if p == nil {
		return winerr.New(winerr.NotFound, "set state of portal", portal, "portal not found")
	}
	n.changed()
	p.down = down
	return nil
}

// HoldISCSITarget keeps the disks of a target open, as a program would, so that logging out
// fails with 0xefff0040 until release is called. Releasing twice is harmless.
func (n *Node) HoldISCSITarget(iqn string) (release func(), err error) {
	n.lock()
	defer n.mu.Unlock()
	t := n.iscsi.target(iqn)
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

// ISCSISessionInfo is a session as it is at one moment.
type ISCSISessionInfo struct {
	Target    string
	Portal    string // such as 10.0.0.10:3260
	Connected bool
	Disks     []uint32 // their numbers, by LUN; those that have appeared
}

// ISCSISessions describes the sessions, the oldest first.
func (n *Node) ISCSISessions() []ISCSISessionInfo {
	n.lock()
	defer n.mu.Unlock()
	var sessions []ISCSISessionInfo
	for _, s := range n.iscsi.sessions {
		info := ISCSISessionInfo{Target: s.target.iqn, Portal: s.portal.String(), Connected: !s.portal.down}
		for _, d := range s.target.luns {
			if n.disks[d.number] == d {
				info.Disks = append(info.Disks, d.number)
			}
		}
		sessions = append(sessions, info)
	}
	return sessions
}

// ISCSILogins lists what Windows will log in to when it starts.
func (n *Node) ISCSILogins() []ISCSILogin {
	n.lock()
	defer n.mu.Unlock()
	var logins []ISCSILogin
	for _, login := range n.iscsi.logins {
		logins = append(logins, ISCSILogin{Target: login.Target, Portal: login.Portal.String()})
	}
	return logins
}

// bootISCSI logs in to what Windows logs in to when it starts, as far as it can be reached.
func (n *Node) bootISCSI() {
	for _, login := range n.iscsi.logins {
		t, p := n.iscsi.target(login.Target), n.iscsi.portal(login.Portal)
		if !p.down && slices.Contains(t.portals, p) {
			n.beginSession(t, p)
		}
	}
}
