package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const opSecret = "set mutual CHAP secret" //nolint:gosec // the name of an operation

// SetMutualChapSecret sets the one secret of the initiator. Callers with different secrets wait
// for each other, and the last one counts.
// https://learn.microsoft.com/windows/win32/api/iscsidsc/nf-iscsidsc-setiscsiinitiatorchapsharedsecret
func (b boundHost) SetMutualChapSecret(mutualChapSecret string) error {
	ctx, h := b.ctx, b.host
	c := change{op: opSecret, object: initiatorSecret, as: fingerprintOf(mutualChapSecret)}
	return h.change(ctx, c, "", func(ctx context.Context) error {
		secret := win.NewSecret(mutualChapSecret)
		defer secret.Wipe()
		if err := h.m.SetInitiatorCHAPSharedSecret(ctx, secret); err != nil {
			return failed(opSecret, "", err)
		}
		now := h.m.Elapsed()
		h.secretSet.Store(&now)
		return nil
	})
}

// loginFollows is how long after SetMutualChapSecret the login may come that needs it.
const loginFollows = 5 * time.Minute

// forgetSecret replaces a secret that this process has set by one that nothing knows: Windows keeps it for ever, and has no
// documented way to remove it. Any session may need it to connect again, and so may a login when Windows starts. If Windows
// does not answer, the secret stays until the next time.
func (h *host) forgetSecret(ctx context.Context) {
	_ = h.change(ctx, change{op: "forget mutual CHAP secret", object: initiatorSecret}, "", func(ctx context.Context) error {
		set := h.secretSet.Load()
		if set == nil || h.m.Elapsed()-*set < loginFollows {
			return nil
		}
		sessions, err := h.m.Sessions(ctx)
		logins, loginsErr := h.m.PersistentLogins(ctx)
		if err := cmp.Or(err, loginsErr); err != nil || len(sessions)+len(logins) > 0 {
			return err
		}
		secret := win.NewSecret(rand.Text()[:16]) // the longest that Windows takes
		defer secret.Wipe()
		if err := h.m.SetInitiatorCHAPSharedSecret(ctx, secret); err != nil {
			return err
		}
		h.secretSet.Store(nil)
		return nil
	})
}
