package winsim

import (
	"cmp"
	"context"
	"slices"
	"time"

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
		id = in.beginSession(t, p, string(login.Secret.Bytes())).id()
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
	case !login.Multipath && slices.ContainsFunc(in.sessions, func(s *iscsiSession) bool { return s.target == t }):
		return winerr.ISCSITargetAlreadyLoggedIn
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
func (in *initiator) beginSession(t *iscsiTarget, p *iscsiPortal, secret string) *iscsiSession {
	in.begun++
	s := &iscsiSession{
		number: in.begun, ISCSILogin: ISCSILogin{Target: t.IQN, Portal: p.address().String(), Secret: secret}, target: t, portal: p,
	}
	in.sessions = append(in.sessions, s)
	in.bringLUNs(s)
	return s
}

// bringLUNs lets requests to the disks of a session go on that has a connection, and brings those that are not there.
func (in *initiator) bringLUNs(s *iscsiSession) {
	for _, d := range s.target.luns {
		in.disks.release(d)
	}
	in.after(in.PnPDelay, func() {
		if slices.Contains(in.sessions, s) && !s.Dropped {
			in.plugLUNs(s.target)
		}
	})
}

// The times after which Windows removes the disks of a lost connection: MaxRequestHoldTime of the initiator, and
// PDORemovePeriod of MPIO.
// https://kb.netapp.com/on-prem/ontap/da/SAN/SAN-KBs/What_are_the_parameters_that_control_how_MS_iSCSI_survives_lost_TCP_connections_without_causing_applications_harm
const (
	requestHoldTime = time.Minute
	pdoRemovePeriod = 20 * time.Second
)

// drop takes the connection from a session. mu is held.
func (in *initiator) drop(s *iscsiSession) {
	if s.Dropped {
		return
	}
	s.Dropped = true
	s.drops++
	if in.connected(s.target) {
		return
	}
	for _, d := range s.target.luns {
		if in.disks.attached(d.Number) == d {
			in.disks.hang(d)
		}
	}
	hold := requestHoldTime
	if in.MPIO {
		hold = pdoRemovePeriod
	}
	in.afterUnlessChanged(&s.drops, hold, func() {
		if slices.Contains(in.sessions, s) && !in.connected(s.target) {
			in.unplugLUNs(s.target)
		}
	})
}

// restore connects a session again, if its portal answers and the target accepts its secret. mu is held.
func (in *initiator) restore(s *iscsiSession) {
	if !s.Dropped || s.portal.Down || s.Secret != s.target.secret() {
		return
	}
	s.Dropped = false
	s.drops++
	in.bringLUNs(s)
}

func (in *initiator) connected(t *iscsiTarget) bool {
	return slices.ContainsFunc(in.sessions, func(s *iscsiSession) bool { return s.target == t && !s.Dropped })
}

// plugLUNs attaches the disks of a target that are not attached. mu is held.
func (in *initiator) plugLUNs(t *iscsiTarget) {
	for _, d := range t.luns {
		in.disks.connect(d, !t.met)
	}
	t.met = true
}

// Sessions lists all sessions.
func (in *initiator) Sessions(_ context.Context) (sessions []win.Session, err error) {
	err = in.onInitiator(func() error {
		for _, s := range in.sessions {
			session := win.Session{ID: s.id(), TargetNodeName: s.target.IQN, TargetName: s.target.IQN}
			if !s.Dropped {
				session.Connections, session.Portals = 1, []win.TargetPortal{s.portal.address()}
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
		for _, d := range s.target.luns {
			device := win.SessionDevice{LUN: d.unit, Device: win.DeviceNumber{Type: win.DeviceTypeDisk, Number: win.NoDeviceNumber}}
			if in.disks.shows(d) {
				device.Device.Number, device.LegacyName = d.Number, string(win.PhysicalDrive(d.Number))
			}
			devices = append(devices, device)
		}
		return devices, nil
	})
}

// Logout ends a session. With the last session of a target its disks go, so it is refused while one of
// them, or a file there, is open: "all devices associated with the session can be safely removed".
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-logoutiscsitarget
func (in *initiator) Logout(_ context.Context, id win.SessionID) error {
	return in.onSession(id, func(s *iscsiSession) error {
		t := s.target
		if t.BusyLogouts > 0 {
			t.BusyLogouts--
			return winerr.ISCSIDeviceBusy
		}
		last := !slices.ContainsFunc(in.sessions, func(other *iscsiSession) bool { return other != s && other.target == t })
		if last && (t.held > 0 || slices.ContainsFunc(t.luns, (*disk).hasOpenFile)) {
			return winerr.ISCSIDeviceBusy
		}
		in.sessions = slices.DeleteFunc(in.sessions, func(other *iscsiSession) bool { return other == s })
		if last {
			in.unplugLUNs(t)
		}
		return nil
	})
}

func (d *disk) hasOpenFile() bool {
	for _, fs := range d.fileSystems {
		if fs.root.anyInUse() {
			return true
		}
	}
	return false
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

// boot repeats the persistent logins that their portals and targets accept.
func (in *initiator) boot() {
	for _, login := range in.logins {
		t, p := in.target(login.Target), in.portal(login.Portal)
		if !p.Down && slices.Contains(t.portals, p) && login.secret == t.secret() {
			in.beginSession(t, p, login.secret)
		}
	}
}
