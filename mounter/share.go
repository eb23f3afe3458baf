package mounter

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// stageShare connects a share and links the path to it. The link's path is locked; CSI Proxy orders
// calls about one server itself.
func (m *Mounter) stageShare(ctx context.Context, path string, share SMB) error {
	share.Remote = strings.TrimRight(strings.ReplaceAll(share.Remote, "/", `\`), `\`)
	klog.FromContext(ctx).V(4).Info("Staging share", "remote", share.Remote, "path", path)
	if dir, ok := parent(path); ok {
		if err := m.node.makeDir(ctx, dir); err != nil {
			return err
		}
	}
	if err := m.begin(ctx, path, share, false); err != nil {
		return err
	}
	err := m.node.mapShare(ctx, share, path)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The kubelet makes an empty folder at the staging path, and a link may lead nowhere any more.
	if cleared, clearErr := m.clearForLink(ctx, path); clearErr != nil {
		return clearErr
	} else if !cleared {
		return newError(failure.Exists, "link", path, "it is a link or mount of another volume; unstage that volume first")
	}
	return m.node.mapShare(ctx, share, path)
}

// clearForLink removes an empty folder or a link that leads nowhere, to make room for a link. It
// reports false if something is there that works.
func (m *Mounter) clearForLink(ctx context.Context, path string) (bool, error) {
	live, err := m.node.isLiveLink(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it has just gone
		return true, nil
	case err != nil:
		return false, err
	case live:
		return false, nil
	}
	return true, m.remove(ctx, path)
}

// unstageShare disconnects a share unless another link uses it, and removes the link at a path.
func (m *Mounter) unstageShare(ctx context.Context, path, remote string) error {
	if err := m.node.unmapShare(ctx, remote, path); err != nil {
		return err
	}
	return m.remove(ctx, path)
}
