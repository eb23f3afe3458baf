package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// Kind says what a warning is about, in a word that scripts can rely on.
type Kind string

// The kinds of warnings.
const (
	Offline    Kind = "offline"     // a disk or volume is
	ReadOnly   Kind = "read-only"   // a disk or volume is
	NoFS       Kind = "raw"         // a volume has no file system
	BitLocker  Kind = "locked"      // a volume is
	Lagging    Kind = "lagging"     // a file system is smaller than it could be
	Full       Kind = "full"        // a volume almost is
	StaleLink  Kind = "stale-mount" // a mount or link leads nowhere
	NoAnswer   Kind = "no-answer"   // something could not be found out
	Unseen     Kind = "unseen"      // this server cannot tell something
	Unsuitable Kind = "path"        // a path that was asked for cannot be looked at
)

// Warning is what is odd about something.
type Warning struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	Run  string `json:"run"` // a command that helps, if there is one
}

// judge finds what is odd about a node. What the objects could not tell, they have as
// warnings already.
func (n *Node) judge() {
	for i := range n.Disks {
		n.Disks[i].judge()
	}
	for i := range n.Volumes {
		n.Volumes[i].judge(false)
	}
}

func (d *Disk) judge() {
	readOnly := d.ReadOnly != nil && *d.ReadOnly
	if d.Online != nil && !*d.Online {
		d.Warnings = append(d.Warnings, Warning{Kind: Offline, Text: "offline: its volumes cannot be seen"})
	}
	if readOnly {
		d.Warnings = append(d.Warnings, Warning{Kind: ReadOnly, Text: "read-only: nothing can be written to it"})
	}
	for i := range d.Partitions {
		if volume := d.Partitions[i].Volume; volume != nil {
			volume.judge(readOnly)
			d.lag(&d.Partitions[i])
		}
	}
}

// judge finds what is odd about a volume, unless its disk says it already.
func (v *Volume) judge(diskReadOnly bool) {
	warn := func(kind Kind, text string) { v.Warnings = append(v.Warnings, Warning{Kind: kind, Text: text}) }
	switch v.State {
	case Raw:
		warn(NoFS, "RAW: no file system")
	case Locked:
		warn(BitLocker, "locked by BitLocker: unlock it to see what is on it")
	case NotReady:
		warn(Offline, "offline: the volume does not answer")
	case Unknown, Formatted:
	}
	readOnly := v.ReadOnly != nil && *v.ReadOnly
	if readOnly && !diskReadOnly {
		warn(ReadOnly, "read-only: nothing can be written to it")
	}
	if !readOnly && v.TotalBytes != nil && v.UsedBytes != nil && *v.UsedBytes > *v.TotalBytes/10*9 {
		warn(Full, "more than 90% full")
	}
}

const (
	// lagBytes is how much of a partition its file system, or of a disk its partitions, may
	// leave unused: rounding and the tables at the end of the disk take less.
	lagBytes = 16 << 20

	// mbrEnd is where the partitions of an MBR disk end at the latest.
	mbrEnd = 2 << 40
)

// lag warns of a file system that is smaller than it could be: than its partition, or, for
// the last partition, than what is left of the disk. Only NTFS can grow, and nothing on the
// disk of Windows.
func (d *Disk) lag(p *Partition) {
	v := p.Volume
	if d.System || d.SizeBytes == nil || v.TotalBytes == nil {
		return
	}
	could := *d.SizeBytes
	switch {
	case p.SizeBytes == nil: // from the API
		if !d.lagsAsFarAsKnown() {
			return
		}
	case v.FileSystem != "NTFS" || p.Type != "data" || *p.OffsetBytes == 0: // a file system without a partition cannot grow
		return
	default:
		could = *p.SizeBytes
		if end := d.end(); p.end() == d.lastEnd() && end-p.end() > lagBytes {
			could = end - *p.OffsetBytes
		}
		if could-*v.TotalBytes <= lagBytes {
			return
		}
	}
	v.Warnings = append(v.Warnings, Warning{
		Kind: Lagging,
		Text: fmt.Sprintf("lagging: the file system has %s and could have %s", output.Size(*v.TotalBytes), output.Size(could)),
		Run:  "csi-proxyctl volume resize " + ShortID(v.ID) + " max",
	})
}

func (p Partition) end() int64 { return *p.OffsetBytes + *p.SizeBytes }

// end is where the last partition could end.
func (d *Disk) end() int64 {
	if d.Style == "MBR" {
		return min(*d.SizeBytes, mbrEnd)
	}
	return *d.SizeBytes
}

// lastEnd is where the last partition ends.
func (d *Disk) lastEnd() int64 {
	return slices.MaxFunc(d.Partitions, func(a, b Partition) int { return cmp.Compare(a.end(), b.end()) }).end()
}

// lagsAsFarAsKnown judges a disk whose partitions are not known. With more than one volume
// nobody can say what the rest of it is for.
func (d *Disk) lagsAsFarAsKnown() bool {
	const (
		reserved = 160 << 20 // what Windows may keep for itself, and the tables
		share    = 50
	)
	if len(d.Partitions) != 1 {
		return false
	}
	rest := *d.SizeBytes - *d.Partitions[0].Volume.TotalBytes
	return rest > reserved && rest > *d.SizeBytes/share
}

// hoist says once for the node what several disks have in common that do not answer, such as
// a group that is not served.
func (n *Node) hoist() {
	disks := map[string][]string{}
	for _, d := range n.Disks {
		for _, w := range d.Warnings {
			if w.Kind == NoAnswer {
				disks[w.Text] = append(disks[w.Text], d.Name())
			}
		}
	}
	for i := range n.Disks {
		n.Disks[i].Warnings = slices.DeleteFunc(n.Disks[i].Warnings, func(w Warning) bool {
			return w.Kind == NoAnswer && len(disks[w.Text]) > 1
		})
	}
	for text, names := range disks {
		if len(names) > 1 {
			n.Warnings = append(n.Warnings, Warning{Kind: NoAnswer, Text: strings.Join(names, ", ") + ": " + text})
		}
	}
	slices.SortFunc(n.Warnings, func(a, b Warning) int { return cmp.Compare(a.Text, b.Text) })
}

// Name is what people call the disk.
func (d Disk) Name() string {
	if d.Number == nil {
		return "disk ? (" + d.Device + ")"
	}
	return fmt.Sprintf("disk %d", *d.Number)
}
