package winsim

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Login begins a session with a discovered target. Its disks appear later.
func (n storage) Login(ctx context.Context, login win.Login) (win.SessionID, error) {
	in, unlock, err := n.initiator()
	if err != nil {
		return win.SessionID{}, err
	}
	err = in.checkLogin(login)
	unlock()
	if err != nil {
		return win.SessionID{}, err
	}
	p, unlock, err := n.awaitPortal(ctx, login.Portal)
	if err != nil {
		return win.SessionID{}, err
	}
	defer unlock()
	// Another login may have finished while the portal took its time.
	if err := in.checkLogin(login); err != nil {
		return win.SessionID{}, err
	}
	t := in.target(login.Target)
	if err := in.authenticate(t, login); err != nil {
		return win.SessionID{}, err
	}
	return n.beginSession(t, p).id, nil
}

// checkLogin returns the error that Windows finds without asking the portal.
func (in *initiator) checkLogin(login win.Login) error {
	t, p := in.target(login.Target), in.portal(login.Portal)
	switch {
	case t == nil || len(in.discovered(t)) == 0:
		return winerr.ISCSITargetNotFound
	case slices.ContainsFunc(in.sessions, func(s *iscsiSession) bool { return s.target == t }):
		return winerr.ISCSITargetAlreadyLoggedIn // a second session needs MPIO
	case p != nil && !slices.Contains(t.portals, p):
		return winerr.ISCSINotFound
	}
	return nil
}

// authenticate checks the CHAP credentials of both sides.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/ne-iscsidsc-iscsi_auth_types
func (in *initiator) authenticate(t *iscsiTarget, login win.Login) error {
	user := login.User
	if user == "" {
		user = in.name
	}
	expected := CHAP{}
	if t.chap != nil {
		if expected = *t.chap; expected.User == "" {
			expected.User = in.name
		}
	}
	switch {
	case (t.chap != nil) != (login.Auth != win.NoAuth):
		return winerr.ISCSIAuthenticationFailure
	case t.chap != nil && (user != expected.User || string(login.Secret.Bytes()) != expected.Secret):
		return winerr.ISCSIAuthenticationFailure
	case login.Auth == win.MutualCHAP && in.secret == "":
		return winerr.ISCSINoAuthInfo
	case login.Auth == win.MutualCHAP && in.secret != expected.MutualSecret:
		return winerr.ISCSIAuthenticationFailure
	}
	return nil
}

// beginSession starts a session; its disks appear later. n.mu is held.
func (n *Node) beginSession(t *iscsiTarget, p *iscsiPortal) *iscsiSession {
	n.iscsi.sessionCount++
	s := &iscsiSession{id: win.SessionID{AdapterUnique: 0xffffe00000000000, AdapterSpecific: 0x4000013700000000 + n.iscsi.sessionCount}, target: t, portal: p}
	n.iscsi.sessions = append(n.iscsi.sessions, s)
	n.changed()
	n.after(n.iscsi.pnpDelay, lunArrival{n, s})
	return s
}

// lunArrival attaches the disks of a session unless it has ended.
type lunArrival struct {
	n       *Node
	session *iscsiSession
}

func (a lunArrival) run() {
	if slices.Contains(a.n.iscsi.sessions, a.session) {
		a.n.plugLUNs(a.session.target)
	}
}

// plugLUNs attaches the disks of a target that are not attached. n.mu is held.
func (n *Node) plugLUNs(t *iscsiTarget) {
	for _, d := range t.luns {
		if n.attached(d.number) == d {
			continue
		}
		d.number = n.freeNumber()
		if !t.attachedBefore {
			for _, v := range n.volumesOn(d) {
				n.applyAutomount(v)
			}
		}
		n.plug(d)
	}
	t.attachedBefore = true
}

// Sessions lists all sessions. One whose portal is down has no connection.
func (n storage) Sessions(_ context.Context) ([]win.Session, error) {
	in, unlock, err := n.initiator()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var sessions []win.Session
	for _, s := range in.sessions {
		session := win.Session{ID: s.id, TargetNodeName: s.target.iqn, TargetName: s.target.iqn, Connections: 1}
		if s.portal.down {
			session.Connections = 0
		}
		sessions = append(sessions, session)
	}
	return sessions, nil
}

// DevicesForSession lists the disks of a session, including those that have not appeared yet.
func (n storage) DevicesForSession(_ context.Context, id win.SessionID) ([]win.SessionDevice, error) {
	s, unlock, err := n.session(id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var devices []win.SessionDevice
	for lun, d := range s.target.luns {
		device := win.SessionDevice{LUN: uint8(lun), Device: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: win.NoDeviceNumber}}
		if n.disks[d.number] == d {
			device.Device.Number, device.LegacyName = d.number, string(win.PhysicalDrive(d.number))
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// Logout ends a session. With the last session of a target its disks go.
func (n storage) Logout(_ context.Context, id win.SessionID) error {
	s, unlock, err := n.session(id)
	if err != nil {
		return err
	}
	defer unlock()
	n.changed()
	t := s.target
	if t.busy > 0 || t.held > 0 {
		t.busy = max(0, t.busy-1)
		return winerr.ISCSIDeviceBusy
	}
	n.iscsi.sessions = slices.DeleteFunc(n.iscsi.sessions, func(other *iscsiSession) bool { return other == s })
	if slices.ContainsFunc(n.iscsi.sessions, func(other *iscsiSession) bool { return other.target == t }) {
		return nil
	}
	n.unplugLUNs(t)
	return nil
}

// unplugLUNs removes the disks of a target. n.mu is held.
func (n *Node) unplugLUNs(t *iscsiTarget) {
	for _, d := range t.luns {
		if n.attached(d.number) == d {
			n.unplug(d)
		}
	}
}

// session returns a session for a call. The caller unlocks.
func (n *Node) session(id win.SessionID) (_ *iscsiSession, unlock func(), _ error) {
	in, unlock, err := n.initiator()
	if err != nil {
		return nil, nil, err
	}
	s := in.session(id)
	if s == nil {
		unlock()
		return nil, nil, winerr.ISCSIInvalidSessionID
	}
	return s, unlock, nil
}

func (in *initiator) session(id win.SessionID) *iscsiSession {
	for _, s := range in.sessions {
		if s.id == id {
			return s
		}
	}
	return nil
}
