package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// offlineUnknown is the reason of a disk of which Windows does not tell why it is offline.
const offlineUnknown = "unknown"

// Kind is the kind of a warning. The words are stable.
type Kind string

// The kinds of warnings.
const (
	Offline    Kind = "offline"     // disk or volume
	ReadOnly   Kind = "read-only"   // disk or volume
	NoFS       Kind = "raw"         // volume without a file system
	BitLocker  Kind = "locked"      // volume
	Lagging    Kind = "lagging"     // file system smaller than possible
	Full       Kind = "full"        // volume more than 90% full
	StaleLink  Kind = "stale-mount" // the target of a mount or link is gone
	NoAnswer   Kind = "no-answer"   // a call failed
	Unseen     Kind = "unseen"      // this server does not report something
	Unsuitable Kind = "path"        // a path of --path cannot be examined
)

// Warning is a problem of a node, disk, volume or path.
type Warning struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
	Run  string `json:"run"` // a command that helps, or empty
}

// addWarnings adds the warnings that follow from the state of disks and volumes. Failed calls
// have added theirs before.
func (n *Node) addWarnings() {
	for i := range n.Disks {
		n.Disks[i].addWarnings()
	}
	for i := range n.Volumes {
		n.Volumes[i].addWarnings(false)
	}
}

func (d *Disk) addWarnings() {
	readOnly := d.ReadOnly != nil && *d.ReadOnly
	if d.Online != nil && !*d.Online {
		text := "offline: its volumes are not visible"
		if known := d.OfflineReason != "" && d.OfflineReason != offlineUnknown; known {
			text = "offline (" + d.OfflineReason + "): its volumes are not visible"
		}
		d.Warnings = append(d.Warnings, Warning{Kind: Offline, Text: text})
	}
	if readOnly {
		d.Warnings = append(d.Warnings, Warning{Kind: ReadOnly, Text: "read-only: writes fail", Run: d.makeWritable()})
	}
	for i := range d.Partitions {
		if volume := d.Partitions[i].Volume; volume != nil {
			volume.addWarnings(readOnly)
			d.checkLag(&d.Partitions[i])
		}
	}
}

// makeWritable returns the command that makes the disk writable, if csi-proxy does that.
func (d *Disk) makeWritable() string {
	if d.Number == nil || d.System {
		return ""
	}
	return fmt.Sprintf("csi-proxyctl disk writable %d", *d.Number)
}

// addWarnings adds the warnings of a volume, unless its disk has them already.
func (v *Volume) addWarnings(diskReadOnly bool) {
	warn := func(kind Kind, text string) { v.Warnings = append(v.Warnings, Warning{Kind: kind, Text: text}) }
	switch v.State {
	case Raw:
		warn(NoFS, "RAW: no file system")
	case Locked:
		warn(BitLocker, "locked by BitLocker: unlock it to read it")
	case NotReady:
		warn(Offline, "offline: the volume does not answer")
	case Unknown, Formatted:
	}
	readOnly := v.ReadOnly != nil && *v.ReadOnly
	if readOnly && !diskReadOnly {
		warn(ReadOnly, "read-only: writes fail")
	}
	if !readOnly && v.TotalBytes != nil && v.UsedBytes != nil && *v.UsedBytes > *v.TotalBytes/10*9 {
		warn(Full, "more than 90% full")
	}
}

const (
	// lagBytes is the unused space that is normal: rounding and the tables at the end of the
	// disk take less.
	lagBytes = 16 << 20

	// mbrEnd is the highest end of a partition on an MBR disk.
	mbrEnd = 2 << 40
)

// checkLag warns of a file system that is smaller than its partition, or than the rest of the
// disk for the last partition. Only NTFS outside the system disk can grow.
func (d *Disk) checkLag(p *Partition) {
	v := p.Volume
	if d.System || d.SizeBytes == nil || v.TotalBytes == nil {
		return
	}
	possible := *d.SizeBytes
	switch {
	case p.SizeBytes == nil: // from the API
		if !d.seemsToLag() {
			return
		}
	case v.FileSystem != "NTFS" || p.Type != "data" || *p.OffsetBytes == 0: // a file system without a partition cannot grow
		return
	default:
		possible = *p.SizeBytes
		if end := d.end(); p.end() == d.lastEnd() && end-p.end() > lagBytes {
			possible = end - *p.OffsetBytes
		}
		if possible-*v.TotalBytes <= lagBytes {
			return
		}
	}
	v.Warnings = append(v.Warnings, Warning{
		Kind: Lagging,
		Text: fmt.Sprintf("lagging: the file system has %s and can grow to %s", output.Size(*v.TotalBytes), output.Size(possible)),
		Run:  "csi-proxyctl volume resize " + ShortID(v.ID) + " max",
	})
}

func (p Partition) end() int64 { return *p.OffsetBytes + *p.SizeBytes }

// end returns the highest possible end of a partition.
func (d *Disk) end() int64 {
	if d.Style == "MBR" {
		return min(*d.SizeBytes, mbrEnd)
	}
	return *d.SizeBytes
}

// lastEnd returns the end of the last partition.
func (d *Disk) lastEnd() int64 {
	return slices.MaxFunc(d.Partitions, func(a, b Partition) int { return cmp.Compare(a.end(), b.end()) }).end()
}

// seemsToLag decides for a disk whose partition sizes are unknown. With several volumes it
// cannot know what the rest of the disk holds, and returns false.
func (d *Disk) seemsToLag() bool {
	const (
		reserved = 160 << 20 // reserved partition and tables
		share    = 50
	)
	if len(d.Partitions) != 1 {
		return false
	}
	rest := *d.SizeBytes - *d.Partitions[0].Volume.TotalBytes
	return rest > reserved && rest > *d.SizeBytes/share
}

// mergeNoAnswers moves no-answer warnings that several disks share, for example about a group
// that is not served, to the node.
func (n *Node) mergeNoAnswers() {
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

// Name returns the name of the disk for people.
func (d Disk) Name() string {
	if d.Number == nil {
		return "disk ? (" + d.Device + ")"
	}
	return fmt.Sprintf("disk %d", *d.Number)
}
