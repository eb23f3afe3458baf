package winsim

import (
	"context"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// initiator is the service MSiSCSI, and the servers that it can reach.
type initiator struct {
	*clock
	services *services
	disks    *disks

	ISCSI    // of the model
	portals  []*iscsiPortal
	targets  []*iscsiTarget
	logins   []persistentLogin
	sessions []*iscsiSession
	begun    uint64 // sessions so far
	units    int    // disks of all targets
}

// persistentLogin has the secret that Windows stores with it.
type persistentLogin struct {
	win.PersistentLogin
	secret string
}

// iscsiService is the service that the initiator needs. On a node without services it counts as
// running.
const iscsiService = "MSiSCSI"

// iscsiPortal is a server's address and what the node knows of it.
type iscsiPortal struct {
	ISCSIPortal
	known []string // the targets that it has offered
}

func (p *iscsiPortal) address() win.TargetPortal {
	return win.TargetPortal{Address: p.Address, Port: p.Port}
}

type iscsiTarget struct {
	ISCSITarget
	portals []*iscsiPortal
	luns    []*disk
	held    int  // open handles to its disks
	met     bool // the node has had its disks before
}

// secret is the secret of CHAP that a login must have.
func (t *iscsiTarget) secret() string {
	if t.CHAP == nil {
		return ""
	}
	return t.CHAP.Secret
}

type iscsiSession struct {
	ISCSILogin
	number uint64 // from 1, of all that the node has begun
	target *iscsiTarget
	portal *iscsiPortal
	drops  int // how often the connection was lost or made again
}

func (s *iscsiSession) id() win.SessionID {
	return win.SessionID{AdapterUnique: 0xffffe00000000000, AdapterSpecific: 0x4000013700000000 + s.number}
}

func (in *initiator) portal(address win.TargetPortal) *iscsiPortal {
	return portalAt(in.portals, address)
}

func portalAt(portals []*iscsiPortal, address win.TargetPortal) *iscsiPortal {
	for _, p := range portals {
		if p.address().Same(address) {
			return p
		}
	}
	return nil
}

func (in *initiator) target(iqn string) *iscsiTarget {
	for _, t := range in.targets {
		if win.SameTarget(t.IQN, iqn) {
			return t
		}
	}
	return nil
}

func (in *initiator) offeredBy(p *iscsiPortal) (names []string) {
	for _, t := range in.targets {
		if slices.Contains(t.portals, p) {
			names = append(names, t.IQN)
		}
	}
	return names
}

// discovered returns the portals that offered a target, in the order of the model.
func (in *initiator) discovered(t *iscsiTarget) (portals []*iscsiPortal) {
	for _, p := range in.portals {
		if p.Registered && slices.Contains(p.known, t.IQN) {
			portals = append(portals, p)
		}
	}
	return portals
}

func (in *initiator) onInitiator(do func() error) error {
	defer in.lock()()
	if s, err := in.services.service(iscsiService); err == nil && s.State != ServiceRunning {
		return winerr.ISCSIServiceNotRunning
	}
	return do()
}

// onPortal waits until a portal answers, and runs a call to it.
func (in *initiator) onPortal(ctx context.Context, portal win.TargetPortal, do func(*iscsiPortal) error) error {
	in.lock()
	p := in.portal(portal)
	in.mu.Unlock()
	if p == nil {
		return winerr.ISCSIConnectionFailed
	}
	if err := in.Sleep(ctx, p.Delay); err != nil {
		return err
	}
	defer in.lock()()
	if p.Down {
		return winerr.ISCSIConnectionFailed
	}
	return do(p)
}

// The methods below implement the seam; internal/win documents them.

func (in *initiator) ReportSendTargetPortals(_ context.Context) (portals []win.SendTargetPortal, err error) {
	err = in.onInitiator(func() error {
		for _, p := range in.portals {
			if p.Registered {
				portals = append(portals, p.report())
			}
		}
		return nil
	})
	return portals, err
}

func (p *iscsiPortal) report() win.SendTargetPortal {
	return win.SendTargetPortal{Portal: p.address(), InitiatorInstance: initiatorInstance, InitiatorPort: win.AnyInitiatorPort}
}

// AddSendTargetPortal registers a portal that answers.
func (in *initiator) AddSendTargetPortal(ctx context.Context, portal win.TargetPortal) error {
	return in.discover(ctx, portal, false, winerr.ISCSIPortalAlreadyExists)
}

// RefreshSendTargetPortal discovers the targets of a registered portal again.
func (in *initiator) RefreshSendTargetPortal(ctx context.Context, portal win.TargetPortal) error {
	return in.discover(ctx, portal, true, winerr.ISCSIPortalNotFound)
}

// discover asks a portal for its targets, or fails with otherwise if the node knows it and should not, or the
// other way round.
func (in *initiator) discover(ctx context.Context, portal win.TargetPortal, registered bool, otherwise error) error {
	if err := in.onInitiator(func() error {
		if p := in.portal(portal); registered != (p != nil && p.Registered) {
			return otherwise
		}
		return nil
	}); err != nil {
		return err
	}
	return in.onPortal(ctx, portal, func(p *iscsiPortal) error {
		p.Registered, p.known = true, in.offeredBy(p)
		return nil
	})
}

// RemoveSendTargetPortal removes a portal and the targets that only it offers. Sessions remain.
func (in *initiator) RemoveSendTargetPortal(_ context.Context, portal win.SendTargetPortal) error {
	return in.onInitiator(func() error {
		p := in.portal(portal.Portal)
		if p == nil || !p.Registered || portal != p.report() {
			return winerr.ISCSIPortalNotFound
		}
		p.Registered, p.known = false, nil
		return nil
	})
}

func (in *initiator) ReportTargets(_ context.Context) (names []string, err error) {
	err = in.onInitiator(func() error {
		for _, t := range in.targets {
			if len(in.discovered(t)) > 0 {
				names = append(names, t.IQN)
			}
		}
		return nil
	})
	return names, err
}

func (in *initiator) ReportTargetPortals(_ context.Context, target string) (portals []win.TargetPortal, err error) {
	err = in.onInitiator(func() error {
		t := in.target(target)
		if t == nil || len(in.discovered(t)) == 0 {
			return winerr.ISCSITargetNotFound
		}
		for _, p := range in.discovered(t) {
			portals = append(portals, p.address())
		}
		return nil
	})
	return portals, err
}

func (in *initiator) PersistentLogins(_ context.Context) (logins []win.PersistentLogin, err error) {
	err = in.onInitiator(func() error {
		for _, login := range in.logins {
			logins = append(logins, login.PersistentLogin)
		}
		return nil
	})
	return logins, err
}

func (in *initiator) RemovePersistentTarget(_ context.Context, login win.PersistentLogin) error {
	return in.onInitiator(func() error {
		at := slices.IndexFunc(in.logins, func(l persistentLogin) bool { return l.PersistentLogin == login })
		if at < 0 {
			return winerr.ISCSITargetNotFound
		}
		in.logins = slices.Delete(in.logins, at, at+1)
		return nil
	})
}

// SetInitiatorCHAPSharedSecret stores the secret. It accepts the lengths that Windows accepts.
func (in *initiator) SetInitiatorCHAPSharedSecret(_ context.Context, secret win.Secret) error {
	return in.onInitiator(func() error {
		if length := len(secret.Bytes()); length < 12 || length > 16 {
			return winerr.ISCSIInvalidCHAPSecret
		}
		in.Secret = string(secret.Bytes())
		return nil
	})
}

// SetISCSIPortalDown makes a portal such as 10.0.0.10:3260 unreachable or reachable. Requests to disks without another
// session wait, and after a minute, or 20 seconds with MPIO, the disks go. Sessions come back if their secret still fits.
func (n *Node) SetISCSIPortalDown(portal string, down bool) error {
	defer n.lock()()
	p := findPortal(n.initiator.portals, portal)
	if p == nil {
		return winerr.New(winerr.NotFound, "set state of portal", portal, "portal not found")
	}
	p.Down = down
	for _, s := range n.initiator.sessions {
		switch {
		case s.portal == p && down:
			n.initiator.drop(s)
		case s.portal == p:
			n.initiator.restore(s)
		}
	}
	return nil
}

// SetISCSICHAP changes the credentials that a target wants; nil means none. Sessions stay until their connection ends.
func (n *Node) SetISCSICHAP(iqn string, chap *CHAP) error {
	const op = "set CHAP of target"
	defer n.lock()()
	t := n.initiator.target(iqn)
	if t == nil {
		return winerr.New(winerr.NotFound, op, iqn, "target not found")
	}
	if chap != nil {
		if err := chap.validate(); err != nil {
			return winerr.As(winerr.Invalid, op, iqn, err, "")
		}
		own := *chap
		chap = &own
	}
	t.CHAP = chap
	for _, s := range n.initiator.sessions {
		n.initiator.restore(s) // Windows tries again and again
	}
	return nil
}
