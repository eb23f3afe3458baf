package mounter

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
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
	leads, err := m.node.leads(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it has just gone
		return true, nil
	case err != nil:
		return false, err
	case leads:
		return false, nil
	}
	return true, m.remove(ctx, path)
}

// unstageShare removes what is at the path, and disconnects the share unless another link uses it.
func (m *Mounter) unstageShare(ctx context.Context, path, remote string) error {
	if remote == "" {
		var err error
		if remote, err = m.shareOf(ctx, path); err != nil {
			return err
		}
	}
	if err := m.remove(ctx, path); err != nil {
		return err
	}
	if remote == "" {
		return nil
	}
	return m.node.unmapShare(ctx, remote)
}

// shareOf returns the mapped share of a link, or "" if the path is not a link to one. It does not
// ask the server. A daemon that cannot tell keeps the share connected, as drivers that cannot read
// links do.
func (m *Mounter) shareOf(ctx context.Context, path string) (string, error) {
	if exists, err := m.node.exists(ctx, path); err != nil || !exists {
		return "", err
	}
	found, err := m.node.describe(ctx, nodeapi.Links, nodeapi.Shares)
	if err == nil && found.LinksFailed && shareAt(found, path) == "" {
		// The links that this process, or the daemon, has made are known without a search.
		found, err = m.node.describe(ctx, nodeapi.Shares)
	}
	switch {
	case cannotTell(err):
		klog.FromContext(ctx).Info("Share stays connected, because the daemon does not report where the link leads", "path", path, "reason", err.Error())
		return "", nil
	case err != nil:
		return "", err
	case found.SharesFailed:
		return "", newError(failure.Unavailable, "look for the share of", path, "%s", problemText(found.Problems))
	}
	remote := shareAt(found, path)
	if remote == "" && (!found.SharesListed || !found.LinksSearched) { // or the daemon does not serve them
		klog.FromContext(ctx).Info("Cannot find out whether the path is a share; keeping any connection", "path", path, "problems", found.Problems)
	}
	return remote, nil
}

// shareAt returns the mapped share of a link, or "".
func shareAt(found *nodeapi.Description, path string) string {
	for _, share := range found.Shares {
		if slices.ContainsFunc(share.Links, func(link string) bool { return pathKey(link) == pathKey(path) }) {
			return share.Remote
		}
	}
	return ""
}
