package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// Row is a volume in one line, or a disk without volumes.
type Row struct {
	Disk   *extensionv1.Disk   // nil for a volume that is not one partition
	Volume *extensionv1.Volume // nil for a disk without volumes
	Users  Users
	Size   string
	State  string // what is not ordinary about it: blank, offline, RAW, the drive, and so on
	Drive  string // if it has one
	Use    int    // percent; -1 if unknown
}

// Name is the disk, or the volume if it is on several or none.
func (r Row) Name() string {
	if r.Disk != nil {
		return strings.Replace(objectOf(r.Disk).Name(), "disk ? (", "disk (", 1)
	}
	return "volume " + ShortID(r.Volume.GetId())
}

// Rows returns the volumes of the node, and the disks that have none. Volumes of the firmware and of recovery count only
// if they have problems.
func (n Node) Rows() (rows []Row) {
	for _, d := range n.GetDisks() {
		before := len(rows)
		for _, p := range d.GetPartitions() {
			if v := n.Volume(p.GetVolumeId()); v != nil && (p.GetType() == "data" || p.GetType() == "" || len(n.ProblemsOf(v)) > 0) {
				rows = append(rows, n.Row(d, v))
			}
		}
		if len(rows) == before {
			rows = append(rows, n.Row(d, nil))
		}
	}
	for _, v := range n.Loose() {
		rows = append(rows, n.Row(nil, v))
	}
	return rows
}

// Row returns one row; its disk or its volume may be nil.
func (n Node) Row(d *extensionv1.Disk, v *extensionv1.Volume) Row {
	r := Row{Disk: d, Volume: v, Use: -1, Users: usersOf(nil)}
	if d != nil {
		r.Size = size(d.SizeBytes)
		if state := DiskState(d); state.Text != "online" {
			r.State = state.Text
		} else if v == nil {
			switch r.State = "no volume"; {
			case d.GetPartitionStyle() == "RAW" && len(d.GetPartitions()) == 0:
				r.State = "blank"
			case n.Unlisted(len(n.GetVolumes())):
				r.State = "volumes unknown"
			}
		}
	}
	if v == nil {
		if d.GetSerialNumber() != "" {
			r.State += ", serial " + d.GetSerialNumber()
		}
		r.Users = n.DiskUsers(d)
		return r
	}
	r.Users = n.Users(v)
	if state := content(v); v.GetState() != extensionv1.VolumeFormatted {
		r.State = cmp.Or(r.State, state.Text)
	}
	for _, path := range append(slices.Clone(v.GetMountPaths()), n.LinksTo(v)...) {
		if len(path) <= len(`C:\`) {
			r.Drive = path
		}
		if used := len(r.Users.Pods)+len(r.Users.PVs)+len(r.Users.Drivers) > 0; r.Drive == path || r.State == "" && !used {
			r.State = strings.TrimSpace(r.State + " " + path)
		}
	}
	if v.TotalBytes != nil && v.UsedBytes != nil && v.GetTotalBytes() > 0 {
		r.Size, r.Use = output.Size(v.GetTotalBytes()), Percent(v)
	}
	return r
}

// Percent rounds down: only a volume without free space is 100% full.
func Percent(v *extensionv1.Volume) int {
	if v.GetTotalBytes() <= 0 {
		return 0
	}
	return int(float64(v.GetUsedBytes()) / float64(v.GetTotalBytes()) * 100)
}

// DiskUsers returns the users of the volumes on a disk, and of what does not work because of it: one that is offline
// lists no volumes.
func (n Node) DiskUsers(d *extensionv1.Disk) Users {
	var paths []string
	for _, v := range n.GetVolumes() {
		if d.Number != nil && slices.Contains(v.GetDisks(), d.GetNumber()) {
			paths = append(append(paths, n.LinksTo(v)...), v.GetMountPaths()...)
		}
	}
	for _, p := range n.ProblemsOf(d) {
		paths = append(paths, p.Affects...)
	}
	return usersOf(paths)
}

// Troubled reports whether a disk, volume, share or session, or a volume on the disk, has or explains a problem.
func (n Node) Troubled(d *extensionv1.Disk) bool {
	if len(n.ProblemsOf(d)) > 0 || n.affected(objectOf(d).Name()) {
		return true
	}
	return slices.ContainsFunc(d.GetPartitions(), func(p *extensionv1.Partition) bool {
		v := n.Volume(p.GetVolumeId())
		return v != nil && (len(n.ProblemsOf(v)) > 0 || n.affected(v.GetId()))
	})
}

// affected reports whether something does not work because of something else.
func (n Node) affected(name string) bool {
	return slices.ContainsFunc(n.Problems, func(p Problem) bool { return slices.Contains(p.Affects, name) })
}

// PodName returns namespace/name of a pod, or its UID if the name is not known.
func (n Node) PodName(uid string) string {
	for _, p := range n.GetPods() {
		if p.GetUid() == uid && p.GetName() != "" {
			return p.GetNamespace() + "/" + p.GetName()
		}
	}
	return uid
}

// PodNames returns the names of pods.
func (n Node) PodNames(uids []string) []string {
	names := make([]string, 0, len(uids))
	for _, uid := range uids {
		names = append(names, n.PodName(uid))
	}
	return names
}

// Severe counts the problems of a severity.
func (n Node) Severe(s problem.Severity) (count int) {
	for _, p := range n.Problems {
		if p.Severity == s {
			count++
		}
	}
	return count
}

// Summary counts the problems: 8 problems: 5 hurt 4 pods, 2 will hurt, 1 note.
func (n Node) Summary() string {
	if len(n.Problems) == 0 {
		return "no problems"
	}
	var parts []string
	if count := n.Severe(problem.Hurts); count > 0 {
		parts = append(parts, fmt.Sprintf("%d hurt %s", count, Count(problem.PodsHurt(n.Problems), "pod")))
	}
	if count := n.Severe(problem.WillHurt); count > 0 {
		parts = append(parts, fmt.Sprintf("%d will hurt", count))
	}
	if count := n.Severe(problem.Note); count > 0 {
		parts = append(parts, Count(count, "note"))
	}
	return Count(len(n.Problems), "problem") + ": " + strings.Join(parts, ", ")
}

// Stamp is when the node was described; empty if that is unknown.
func (n Node) Stamp() string {
	if n.At.IsZero() {
		return ""
	}
	return n.At.UTC().Format("2006-01-02 15:04:05 UTC")
}

// Programs are the versions of the server and of this program.
func (n Node) Programs() string {
	switch server := n.GetVersion(); server {
	case version.String():
		return "csi-proxy " + server
	case "":
		return name + " " + version.String()
	default:
		return "csi-proxy " + server + ", " + name + " " + version.String()
	}
}

const name = "csi-proxyctl"

// Style is the colour of a severity.
func Style(s problem.Severity) output.Style {
	switch s {
	case problem.Hurts:
		return output.Bad
	case problem.WillHurt:
		return output.Warning
	default:
		return output.Plain
	}
}

// Age says for how long the daemon has seen a problem, if that is a minute or more: "for 2 h".
func (n Node) Age(p Problem) string {
	if p.Since == nil {
		return ""
	}
	switch age := n.At.Sub(*p.Since); {
	case age < time.Minute:
		return ""
	case age < 2*time.Hour:
		return fmt.Sprintf("for %d min", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("for %d h", int(age.Hours()))
	default:
		return fmt.Sprintf("for %d days", int(age.Hours()/24))
	}
}
