package api

import (
	"context"

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
		return nil
	})
}
