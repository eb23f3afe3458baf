package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/storage/warning"
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
		remedy := w.Run
		if remedy == "" {
			remedy = w.Advice
		}
		f.add(Warning, check, remedy, "%s", text)
	}
	if bad == 0 {
		f.add(OK, check, "", "%s", seen(node))
	}
}

// seen says what was looked at and is in order.
func seen(node inventory.Node) string {
	parts := []string{count(len(node.Disks), "disk")}
	if node.LinksSearched {
		parts = append(parts, "mounts and links")
	}
	if node.SharesListed {
		parts = append(parts, count(len(node.Shares), "share"))
	}
	if node.SessionsListed {
		parts = append(parts, count(len(node.Sessions), "iSCSI session"))
	}
	return strings.Join(parts, ", ") + ": no warnings"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
