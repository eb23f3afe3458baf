package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opConnect = "connect target"

func (b boundHost) ConnectTarget(portal *TargetPortal, iqn, authType, chapUser, chapSecret string) error {
	ctx, h := b.ctx, b.host
	at, err := parsePortal(opConnect, portal)
	if err != nil {
		return err
	}
	auth, ok := authTypes[authType]
	if !ok {
		return winerr.New(winerr.Invalid, opConnect, iqn, "authentication type %.100q is invalid; use NONE, ONEWAYCHAP or MUTUALCHAP", authType)
	}
	if auth == win.NoAuth {
		chapUser, chapSecret = "", "" // do not send what is not needed
	}
	as := fingerprintOf(at.Key(), authType, chapUser, chapSecret)
	return h.change(ctx, change{op: opConnect, object: targetObject(iqn), as: as}, iqn, func(ctx context.Context) error {
		secret := win.NewSecret(chapSecret)
		defer secret.Wipe()
		return h.connect(ctx, win.Login{Target: iqn, Portal: at, Auth: auth, User: chapUser, Secret: secret})
	})
}

// authTypes are the types by the names that package iscsi gives them.
var authTypes = map[string]win.AuthType{"NONE": win.NoAuth, "ONEWAYCHAP": win.OneWayCHAP, "MUTUALCHAP": win.MutualCHAP}

// connect logs in until Windows restarts. After a restart the driver logs in again; a login that
// Windows repeats by itself would bring disks that no driver knows of.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-loginiscsitargetw
func (h *host) connect(ctx context.Context, login win.Login) error {
	sessions, err := h.sessions(ctx, login.Target)
	if err != nil {
		return failed(opConnect, login.Target, err)
	}
	for _, session := range sessions {
		if stuck, found := h.m.StuckChange(ctx, session.ID.String()); found { // it can end at any time
			return winerr.As(winerr.Unavailable, opConnect, login.Target, stuck, "")
		}
	}
	switch {
	case len(sessions) == 0:
		login.Multipath = h.hasMPIO(ctx)
	case slices.ContainsFunc(sessions, func(s win.Session) bool { return s.Connections > 0 }):
		if login.Multipath, err = h.addsPath(ctx, login, sessions); err != nil || !login.Multipath {
			return err
		}
	}
	set := h.secretSet.Load()
	err = h.loginAsKnown(ctx, login)
	if errors.Is(err, winerr.NotFound) && h.m.RefreshSendTargetPortal(ctx, login.Portal) == nil {
		err = h.loginAsKnown(ctx, login) // it has come since the portal was asked
	}
	switch {
	case errors.Is(err, winerr.Exists): // a session that reconnects, or another program was faster
		klog.FromContext(ctx).V(2).Info("The target already has a session", "target", login.Target, "reason", err)
		return nil
	case errors.Is(err, winerr.NotFound):
		return unknown(opConnect, login.Portal, login.Target, err)
	case winerr.CodeOf(err) != 0 && errors.Is(err, winerr.Denied):
		return winerr.As(winerr.Denied, opConnect, login.Target, err, denied(login.Auth))
	case err != nil:
		return failed(opConnect, login.Target, err)
	}
	if login.Auth == win.MutualCHAP && set != nil { // this is the login that it was set for
		followed := *set - loginFollows
		h.secretSet.CompareAndSwap(set, &followed)
	}
	return nil
}

// login logs in. Windows sometimes answers ERROR_INSUFFICIENT_BUFFER (122) to a login that
// succeeds when it is repeated.
func (h *host) login(ctx context.Context, login win.Login) (failure error) {
	const pause, repeats = 200 * time.Millisecond, 9
	_, err := win.Poll(ctx, h.m, win.Backoff{First: pause, Longest: pause, Limit: repeats * pause}, func(time.Duration) (bool, error) {
		_, failure = h.m.Login(ctx, login)
		return !winerr.IsBufferTooSmall(failure), nil
	})
	if err != nil {
		return err
	}
	return failure
}

// loginAsKnown logs in. If Windows does not know the target it tries the spelling that Windows
// knows: names of targets ignore case, but LoginIScsiTargetW is not documented to.
func (h *host) loginAsKnown(ctx context.Context, login win.Login) error {
	failure := h.login(ctx, login)
	if !errors.Is(failure, winerr.NotFound) {
		return failure
	}
	known, err := h.m.ReportTargets(ctx)
	if err != nil {
		return err
	}
	for _, name := range known {
		if name != login.Target && win.SameTarget(name, login.Target) {
			login.Target = name
			return h.login(ctx, login)
		}
	}
	return failure
}

// denied says what to check when a target refuses a login.
func denied(auth win.AuthType) string {
	switch auth {
	case win.OneWayCHAP:
		return "check CHAP user and secret"
	case win.MutualCHAP:
		return "check CHAP user and secret, and the secret of the target that SetMutualChapSecret sets"
	default:
		return "the target may require CHAP, or may not allow this initiator"
	}
}

// fingerprint stands for secrets in the name of a change, which must not keep them.
type fingerprint [sha256.Size]byte

// salt makes fingerprints worthless outside this process.
var salt = sync.OnceValue(func() (s [sha256.Size]byte) {
	_, _ = rand.Read(s[:]) // never fails
	return s
})

// fingerprintOf is the same for the same texts. Their lengths separate them.
func fingerprintOf(texts ...string) fingerprint {
	salt := salt()
	hash := sha256.New()
	hash.Write(salt[:])
	for _, text := range texts {
		hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
		hash.Write([]byte(text))
	}
	return fingerprint(hash.Sum(nil))
}
