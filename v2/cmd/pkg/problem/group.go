package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// maxNamed is how many objects of a group Name names.
const maxNamed = 12

// Name returns what a problem is about, for people.
func (p Problem) Name() string {
	if len(p.Others) == 0 {
		return p.Object.Name()
	}
	var names []string
	for _, o := range append([]Object{p.Object}, p.Others...)[:min(1+len(p.Others), maxNamed)] {
		names = append(names, o.ID[strings.LastIndex(o.ID, `\`)+1:])
	}
	if more := 1 + len(p.Others) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%d %ss of %s (%s)", 1+len(p.Others), p.Object.Type, p.Of, strings.Join(names, ", "))
}

// Is reports whether a problem is about an object.
func (p Problem) Is(o Object) bool { return p.Object == o || slices.Contains(p.Others, o) }

// group makes one problem of those that have one cause: of the shares of a server, and of the disks of an iSCSI target or a
// bus, that fail alike. The most urgent comes first.
func group(node *extensionv1.Node, problems []Problem) (found []Problem) {
	of := map[Object]string{}
	for _, d := range node.GetDisks() {
		if !d.GetSystem() {
			of[DiskObject(d)] = busOf(d)
		}
	}
	for _, s := range node.GetSessions() {
		for _, number := range s.GetDisks() {
			of[Object{Disk, fmt.Sprint(number)}] = "target " + s.GetTarget()
		}
	}
	status := map[Object]string{}
	for _, s := range node.GetShares() {
		status[Object{Share, s.GetRemote()}] = s.GetStatus()
	}
	at := map[[4]string]int{}
	for _, p := range problems {
		of, cause := of[p.Object], cmp.Or(p.Cause, status[p.Object])
		if p.Object.Type == Share {
			of = `\\` + serverOf(p.Object.ID)
		}
		if of == "" || cause == "" || p.Kind != NoAnswer && p.Kind != DeadShare {
			found = append(found, p)
			continue
		}
		key := [4]string{string(p.Kind), cause, p.Text, of}
		i, known := at[key]
		if !known {
			at[key] = len(found)
			found = append(found, p)
			continue
		}
		found[i].Of = of
		found[i].join(p)
	}
	for i := range found {
		if p := &found[i]; len(p.Others) > 0 {
			p.Advice = strings.ReplaceAll(p.Advice, strings.ReplaceAll(p.Object.ID, `\`, "/"), "SHARE")
			all := append(p.Others, p.Object)
			slices.SortFunc(all, func(a, b Object) int { return printable.Compare(a.ID, b.ID) })
			p.Object, p.Others = all[0], all[1:]
		}
	}
	return found
}

// busOf returns where a disk is attached. One that does not say has an adapter in the name of its device interface:
// \\?\scsi#disk&ven_x&prod_y#ADAPTER&000001#{...}, with the address of the disk at the adapter.
// https://learn.microsoft.com/windows-hardware/drivers/install/device-instance-ids
func busOf(d *extensionv1.Disk) string {
	if address := strings.Split(d.GetScsiAddress(), ":"); len(address) == 4 {
		return "bus " + address[0] + ":" + address[1]
	}
	parts := strings.Split(d.GetDevice(), "#")
	if len(parts) < 3 || !strings.Contains(parts[2], "&") {
		return ""
	}
	return "adapter " + parts[2][:strings.LastIndex(parts[2], "&")]
}

// join adds a problem with the same cause.
func (p *Problem) join(q Problem) {
	if len(p.Others) == 0 { // others share its slices
		p.Affects, p.Pods, p.PVs = slices.Clone(p.Affects), slices.Clone(p.Pods), slices.Clone(p.PVs)
	}
	p.Others = append(p.Others, q.Object)
	for _, name := range q.Affects {
		if !slices.Contains(p.Affects, name) {
			p.Affects = append(p.Affects, name)
		}
	}
	for _, uid := range q.Pods {
		p.Pods = insert(p.Pods, uid)
	}
	for _, pv := range q.PVs {
		p.PVs = insert(p.PVs, pv)
	}
	if q.Since != nil && (p.Since == nil || q.Since.Before(*p.Since)) {
		p.Since = q.Since
	}
}
