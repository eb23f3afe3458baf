package doctor

import (
	"cmp"
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
)

// storage reports every warning about disks, volumes, mounts, shares and sessions. The server opens the
// shares: Windows' status of a share stays ok when its server is gone.
func (d examination) storage(ctx context.Context, f *findings) {
	const check = "storage"
	node, err := inventory.Source{Client: d.Client, Endpoints: &d.Node}.Node(ctx, nil, true)
	switch {
	case f.skipped(check, "", "disk", err):
		return
	case err != nil:
		f.add(Error, check, "read the daemon's log", "not checked: %s", inventory.Reason(err))
		return
	}
	bad := 0
	for _, w := range node.Problems {
		if w.Kind == warning.Unseen {
			f.skip(check, "not checked: %s", w.Text)
			continue
		}
		bad++
		text := w.Text
		if w.Object.Type != warning.Node {
			text = w.Object.Name() + ": " + text
		}
		if pods := inventory.UsersOf(w).Pods; len(pods) > 0 {
			text += "; used by pod " + list(pods)
		}
		f.add(Warning, check, cmp.Or(w.Run, w.Advice), "%s", text)
	}
	if bad == 0 {
		f.add(OK, check, "", "%s", seen(node))
	}
}

// seen says what was looked at and is in order.
func seen(node inventory.Node) string {
	parts := []string{inventory.Count(len(node.GetDisks()), "disk")}
	if node.GetLinksSearched() {
		parts = append(parts, "mounts and links")
	}
	if node.GetSharesListed() {
		parts = append(parts, inventory.Count(len(node.GetShares()), "share"))
	}
	if node.GetSessionsListed() {
		parts = append(parts, inventory.Count(len(node.GetSessions()), "iSCSI session"))
	}
	return strings.Join(parts, ", ") + ": no warnings"
}
