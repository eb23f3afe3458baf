package mounter

import (
	"context"

	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"k8s.io/mount-utils"
)

// NewSafeMounter works in a HostProcess container, or through the pipes of CSI Proxy.
func NewSafeMounter(enableWindowsHostProcess, _ bool) (*mount.SafeFormatAndMount, error) {
	mode := kit.Daemon
	if enableWindowsHostProcess {
		mode = kit.Library
	}
	m, err := kit.New(context.Background(), kit.WithMode(mode))
	if err != nil {
		return nil, err
	}
	return Bind(context.Background(), m), nil
}

// bound is a mounter for one request.
type bound struct {
	*kit.Mounter
	ctx context.Context
}

// Bind returns a mounter whose calls end with ctx.
func Bind(ctx context.Context, m *kit.Mounter) *mount.SafeFormatAndMount {
	safe := kit.NewSafeFormatAndMount(m).SafeFormatAndMount
	safe.Interface = bound{m.WithContext(ctx), ctx}
	return safe
}

func (b bound) WithContext(ctx context.Context) *mount.SafeFormatAndMount {
	return Bind(ctx, b.Mounter)
}

// Kit returns the mounter in m.
func Kit(m *mount.SafeFormatAndMount) *kit.Mounter { return m.Interface.(bound).Mounter }

// Context returns the context of the request.
func Context(m *mount.SafeFormatAndMount) context.Context { return m.Interface.(bound).ctx }
