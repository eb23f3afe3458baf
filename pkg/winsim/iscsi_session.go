package winsim

import (
	"cmp"
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Login begins a session with a discovered target. Its disks appear later.
func (in *initiator) Login(ctx context.Context, login win.Login) (id win.SessionID, err error) {
	if err := in.onInitiator(func() error { return in.checkLogin(login) }); err != nil {
		return win.SessionID{}, err
	}
	err = in.onPortal(ctx, login.Portal, func(p *iscsiPortal) error {
		// Another login may have finished while the portal took its time.
		if err := in.checkLogin(login); err != nil {
			return err
		}
		t := in.target(login.Target)
		if err := in.authenticate(t, login); err != nil {
			return err
		}
		id = in.beginSession(t, p).id()
		return nil
	})
	return id, err
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
	expected := CHAP{}
	if t.CHAP != nil {
		expected = *t.CHAP
	}
	switch {
	case (t.CHAP != nil) != (login.Auth != win.NoAuth):
		return winerr.ISCSIAuthenticationFailure
	case t.CHAP != nil && (cmp.Or(login.User, in.Initiator) != cmp.Or(expected.User, in.Initiator) || string(login.Secret.Bytes()) != expected.Secret):
		return winerr.ISCSIAuthenticationFailure
	case login.Auth == win.MutualCHAP && in.Secret == "":
		return winerr.ISCSINoAuthInfo
	case login.Auth == win.MutualCHAP && in.Secret != expected.MutualSecret:
		return winerr.ISCSIAuthenticationFailure
	}
	return nil
}

// beginSession starts a session; its disks appear later. mu is held.
func (in *initiator) beginSession(t *iscsiTarget, p *iscsiPortal) *iscsiSession {
	in.SessionCount++
	s := &iscsiSession{ISCSILogin{Number: in.SessionCount, Target: t.IQN, Portal: p.address().String()}, t, p}
	in.sessions = append(in.sessions, s)
	in.changed()
	in.after(in.PnPDelay, in.lunArrival(s))
	return s
}

// lunArrival attaches the disks of a session unless it has ended.
func (in *initiator) lunArrival(s *iscsiSession) event {
	return event{Event: Event{Kind: lunsArrive}, of: s, run: func() {
		if slices.Contains(in.sessions, s) {
			in.plugLUNs(s.target)
		}
	}}
}

// plugLUNs attaches the disks of a target that are not attached. mu is held.
func (in *initiator) plugLUNs(t *iscsiTarget) {
	for _, d := range t.luns {
		in.disks.connect(d, !t.Met)
	}
	t.Met = true
}

// Sessions lists all sessions. One whose portal is down has no connection.
func (in *initiator) Sessions(_ context.Context) (sessions []win.Session, err error) {
	err = in.onInitiator(func() error {
		for _, s := range in.sessions {
			session := win.Session{ID: s.id(), TargetNodeName: s.target.IQN, TargetName: s.target.IQN, Connections: 1}
			if s.portal.Down {
				session.Connections = 0
			}
			sessions = append(sessions, session)
		}
		return nil
	})
	return sessions, err
}

// DevicesForSession lists the disks of a session, including those that have not appeared yet.
func (in *initiator) DevicesForSession(_ context.Context, id win.SessionID) ([]win.SessionDevice, error) {
	return read(in.onSession, id, func(s *iscsiSession) ([]win.SessionDevice, error) {
		var devices []win.SessionDevice
		for lun, d := range s.target.luns {
			device := win.SessionDevice{LUN: uint8(lun), Device: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: win.NoDeviceNumber}}
			if in.disks.shows(d) {
				device.Device.Number, device.LegacyName = d.Number, string(win.PhysicalDrive(d.Number))
			}
			devices = append(devices, device)
		}
		return devices, nil
	})
}

// Logout ends a session. With the last session of a target its disks go.
func (in *initiator) Logout(_ context.Context, id win.SessionID) error {
	return in.onSession(id, func(s *iscsiSession) error {
		in.changed()
		t := s.target
		if t.BusyLogouts > 0 || t.held > 0 {
			t.BusyLogouts = max(0, t.BusyLogouts-1)
			return winerr.ISCSIDeviceBusy
		}
		in.sessions = slices.DeleteFunc(in.sessions, func(other *iscsiSession) bool { return other == s })
		if slices.ContainsFunc(in.sessions, func(other *iscsiSession) bool { return other.target == t }) {
			return nil
		}
		in.unplugLUNs(t)
		return nil
	})
}

// unplugLUNs removes the disks of a target. mu is held.
func (in *initiator) unplugLUNs(t *iscsiTarget) {
	for _, d := range t.luns {
		in.disks.disconnect(d)
	}
}

func (in *initiator) onSession(id win.SessionID, do func(*iscsiSession) error) error {
	return in.onInitiator(func() error {
		s := in.session(id)
		if s == nil {
			return winerr.ISCSIInvalidSessionID
		}
		return do(s)
	})
}

func (in *initiator) session(id win.SessionID) *iscsiSession {
	for _, s := range in.sessions {
		if s.id() == id {
			return s
		}
	}
	return nil
}

// endSessions ends all sessions, even if their disks are open.
func (in *initiator) endSessions() {
	in.sessions = nil
	for _, t := range in.targets {
		in.unplugLUNs(t)
	}
}

// boot repeats the persistent logins whose portals answer.
func (in *initiator) boot() {
	for _, login := range in.logins {
		t, p := in.target(login.Target), in.portal(login.Portal)
		if !p.Down && slices.Contains(t.portals, p) {
			in.beginSession(t, p)
		}
	}
}
