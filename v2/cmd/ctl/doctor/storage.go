package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
)

// storage reports every warning about disks, volumes, mounts, shares and sessions. The server opens the
// shares: Windows' status of a share stays ok when its server is gone.
func (d examination) storage(ctx context.Context, f *findings) {
	const check = "storage"
	node, err := inventory.Source{Client: d.Client, Endpoints: &d.Node, Now: d.Now}.Node(ctx, nil, true)
	switch {
	case d.skipped(f, check, "", "disk", err):
		return
	case err != nil:
		f.add(Error, check, "read the daemon's log", "not checked: %s", inventory.Reason(err))
		return
	}
	bad := 0
	for _, w := range node.Problems {
		if expected := d.serve("system", "disk", "volume") && (node.GetVersion() == "" || d.serve("filesystem", "smb", "iscsi")); w.Kind == warning.Unseen && !expected {
			f.skip(check, "not checked: %s", w.Text)
			continue
		}
		bad++
		text := w.Text
		if w.Object.Type != warning.Node {
			text = w.Object.Name() + ": " + text
		}
		if age := node.Age(w); age != "" {
			text += ", " + age
		}
		if len(w.Pods) > 0 {
			text += "; pods: " + list(node.PodNames(w.Pods))
		}
		level := map[warning.Severity]Level{warning.Hurts: Error, warning.WillHurt: Warning, warning.Note: Info}[w.Severity]
		switch {
		case w.Kind == warning.Unseen:
			level = Error
		case w.Kind == warning.NoAnswer && level == Info: // it was not checked
			level = Warning
		}
		finding := Finding{Check: check, Level: level, Text: text, Remedy: w.Advice, Severity: w.Severity, Pods: w.Pods, PVs: w.PVs}
		if w.Run != "" {
			finding.Remedy, finding.Advice = w.Run, w.Advice
		}
		*f = append(*f, finding)
	}
	if bad == 0 {
		f.add(OK, check, "", "%s", seen(node))
	}
}

// serve reports whether a server that has an inspector, as all that report their version do, answers for all these groups.
func (d examination) serve(groups ...string) bool {
	return !slices.ContainsFunc(groups, func(group string) bool {
		return !slices.ContainsFunc(d.health, func(h endpoint.Health) bool {
			return h.Name.Group == group && h.State.Answers() && h.Version != ""
		})
	})
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
	return strings.Join(parts, ", ") + ": no problems"
}
