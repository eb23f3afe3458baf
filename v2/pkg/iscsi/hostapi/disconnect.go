package api

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opDisconnect = "disconnect target"

// logoutTimeout is how long other programs may take to close the disks of a target.
const logoutTimeout = time.Minute

func (b boundHost) DisconnectTarget(portal *TargetPortal, iqn string) error {
	ctx, h := b.ctx, b.host
	at, err := parsePortal(opDisconnect, portal)
	if err != nil {
		return err
	}
	timeout := timeLeft(ctx, logoutTimeout)
	return h.change(ctx, change{op: opDisconnect, object: targetObject(iqn)}, iqn, func(ctx context.Context) error {
		return h.disconnect(ctx, at, iqn, timeout)
	})
}

// disconnect logs out of all sessions of a target, through whichever portal: the caller will take
// the target away. Then it removes the logins that Windows would repeat at its next start: a target that stays in use must
// come back then.
func (h *host) disconnect(ctx context.Context, portal win.TargetPortal, target string, timeout time.Duration) error {
	if stuck, found := h.m.StuckChange(ctx, win.FoldTarget(target)); found { // it can bring a session at any time
		return winerr.As(winerr.Unavailable, opDisconnect, target, stuck, "")
	}
	sessions, err := h.sessions(ctx, target)
	if err != nil {
		return failed(opDisconnect, target, err)
	}
	if len(sessions) == 0 {
		if err := h.forgetLogins(ctx, target); err != nil {
			return err
		}
		return h.checkKnown(ctx, opDisconnect, portal, target)
	}
	clock := clockUntil{h.m, h.m.Elapsed() + timeout}
	backoff := win.Backoff{First: 500 * time.Millisecond, Longest: 4 * time.Second, Limit: timeout}
	var busy error
	_, err = win.Poll(ctx, clock, backoff, func(time.Duration) (bool, error) {
		if busy, err = h.logout(ctx, sessions); err != nil {
			return false, failed(opDisconnect, target, err)
		}
		if sessions, err = h.sessions(ctx, target); err != nil {
			return false, failed(opDisconnect, target, err)
		}
		return len(sessions) == 0 || clock.left() == 0, nil
	})
	switch {
	case err != nil:
		return err
	case len(sessions) == 0:
		defer h.forgetSecret(ctx)
		return h.forgetLogins(ctx, target)
	case busy != nil:
		return winerr.As(winerr.Busy, opDisconnect, target, busy, "unmount the volumes of its disks, and close what has them open")
	default:
		return winerr.New(winerr.Busy, opDisconnect, target, "Windows still lists a session after logging out of it")
	}
}

// forgetLogins removes the logins to a target that Windows repeats at each start.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-removeiscsipersistenttargetw
func (h *host) forgetLogins(ctx context.Context, target string) error {
	logins, err := h.m.PersistentLogins(ctx)
	if err != nil {
		return failed(opDisconnect, target, err)
	}
	for _, login := range logins {
		if !win.SameTarget(login.Target, target) {
			continue
		}
		if err := h.m.RemovePersistentTarget(ctx, login); err != nil && !errors.Is(err, winerr.NotFound) {
			return failed(opDisconnect, target, err)
		}
	}
	return nil
}

// logout tries to end all sessions, also when one of them fails. Busy is the reason to try again:
// Windows ends a session only if all its disks can be removed.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-logoutiscsitarget
func (h *host) logout(ctx context.Context, sessions []win.Session) (busy, err error) {
	var failure error
	for _, session := range sessions {
		switch err := h.m.Logout(ctx, session.ID); {
		case err == nil || errors.Is(err, winerr.NotFound): // it has ended by itself
		case errors.Is(err, winerr.Busy):
			klog.FromContext(ctx).V(4).Info("A session is in use", "target", session.TargetName, "reason", err)
			busy = err
		default:
			failure = errors.Join(failure, err)
		}
	}
	return busy, failure
}
