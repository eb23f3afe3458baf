package doctor

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// maxCalls is how many of the calls that failed lately doctor reports.
const maxCalls = 5

// storage reports every problem of disks, volumes, mounts, shares and sessions.
func (d examination) storage(ctx context.Context, r *results) {
	const check = "storage"
	node, err := inventory.Source{Client: d.Client, Now: d.Now}.Node(ctx)
	switch {
	case d.skipped(r, check, "", "system", err):
		return
	case status.Code(err) == codes.Unimplemented:
		r.skip(check, "not checked: %s", status.Convert(err).Message())
		return
	case err != nil:
		r.add(Error, check, "read the daemon's log", "not checked: %s", inventory.Reason(err))
		return
	}
	d.foreign(node, r)
	rootAccess(node, r)
	bad := 0
	for _, p := range node.Problems {
		if p.Kind == problem.Unseen && !d.serve("filesystem", "smb", "iscsi") {
			r.skip(check, "not checked: %s", p.Text)
			continue
		}
		bad++
		text := p.Text
		if p.Object.Type != problem.Node {
			text = p.Name() + ": " + text
		}
		if age := node.Age(p); age != "" {
			text += ", " + age
		}
		if len(p.Pods) > 0 {
			text += "; pods: " + list(node.PodNames(p.Pods))
		}
		level := map[problem.Severity]Level{problem.Hurts: Error, problem.WillHurt: Warning, problem.Note: Info}[p.Severity]
		switch {
		case p.Kind == problem.Unseen:
			level = Error
		case p.Kind == problem.NoAnswer && level == Info: // it was not checked
			level = Warning
		}
		result := Result{Check: check, Level: level, Text: text, Remedy: p.Advice, Severity: p.Severity, Pods: p.Pods, PVs: p.PVs}
		if p.Run != "" {
			result.Remedy, result.Advice = p.Run, p.Advice
		}
		*r = append(*r, result)
	}
	if bad == 0 {
		r.add(OK, check, "", "%s", seen(node))
	}
	for i, call := range node.Failed() {
		if i == maxCalls {
			break
		}
		r.add(Info, "failed calls", "", "%s", call)
	}
	// Windows' status of a share stays ok when its server is gone.
	used, opened := false, false
	for _, s := range node.GetShares() {
		used = used || len(s.GetLinks()) > 0 && inventory.Mapped(s)
		opened = opened || s.Answers != nil || len(s.GetProblems()) > 0
	}
	if used && !opened {
		r.skip("shares", "whether they open is not known: the daemon opens one each minute, with -ask-shares and -metrics-storage; ask now: csi-proxyctl smb list --ask")
	}
}

// foreign warns of disks that only LUN masking keeps from this node.
func (d examination) foreign(node inventory.Node, r *results) {
	if policy, err := d.SANPolicy(); err == nil && policy == win.SANOnlineAll && len(node.GetSessions()) > 0 {
		r.add(Warning, "iSCSI disks", "let targets show this node only its own LUNs, or: diskpart.exe, san policy=OfflineShared",
			"the SAN policy brings all disks of iSCSI targets online, also those of other nodes")
	}
}

// rootAccess says which volumes only pods of administrators can write to: ContainerUser is a member of Users.
// https://github.com/kubernetes-csi/csi-proxy/issues/382
func rootAccess(node inventory.Node, r *results) {
	var names []string
	for _, v := range node.GetVolumes() {
		if node.AdministratorsOnly(v) {
			names = append(names, inventory.ShortID(v.GetId()))
		}
	}
	if len(names) > 0 {
		r.add(Info, "root access", "if pods run as ContainerUser: -format-root-access=users-modify, in the chart format.rootAccess, for new volumes; icacls for these",
			"%s of pods let only administrators create files in the root: %s", inventory.Count(len(names), "volume"), list(names))
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
