package webpage

import (
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// bar is a picture to scale. Its places and widths are attributes of SVG: the policy of the page
// forbids attributes of style.
type bar struct {
	Label    string // for those who do not see it
	Segments []segment
}

// segment is a part of a bar. Places and widths are in percent of the bar.
type segment struct {
	X, Width string
	Class    string
	Title    string
	Target   string // the id of what it stands for, if it is a link
}

// scale turns bytes into percent.
type scale int64

func (s scale) percent(bytes int64) string {
	if s <= 0 || bytes <= 0 {
		return "0%"
	}
	return fmt.Sprintf("%.3f%%", min(100, 100*float64(bytes)/float64(s)))
}

// Classes of segments. A place that no segment covers belongs to no partition.
const (
	classFree     = "free"
	classUsed     = "used"
	classFull     = "full"
	classReserved = "reserved"
	classUnknown  = "unknown" // no file system that can be read
	classOffline  = "offline"
)

func (b *bar) add(x, width, class, title string) {
	b.Segments = append(b.Segments, segment{X: x, Width: width, Class: class, Title: title})
}

// diskBar draws the partitions of a disk, or nothing if their places are unknown.
func diskBar(name string, d inventory.Disk) *bar {
	if d.SizeBytes == nil || *d.SizeBytes <= 0 {
		return nil
	}
	b, whole, words := &bar{}, scale(*d.SizeBytes), []string{}
	offline := d.Online != nil && !*d.Online
	for _, p := range d.Partitions {
		if p.OffsetBytes == nil || p.SizeBytes == nil {
			return nil
		}
		title := fmt.Sprintf("partition %d, %s", p.Number, output.Size(*p.SizeBytes))
		if p.Type != "" {
			title += " " + p.Type
		}
		x, width := whole.percent(*p.OffsetBytes), whole.percent(*p.SizeBytes)
		switch v := p.Volume; {
		case offline:
			b.add(x, width, classOffline, title)
		case v == nil:
			b.add(x, width, classReserved, title)
		case v.UsedBytes == nil:
			title += ", " + fileSystem(*v).Text
			b.add(x, width, classUnknown, title)
		default:
			title += fmt.Sprintf(", %s used", output.Size(*v.UsedBytes))
			b.add(x, width, classFree, title)
			b.add(x, whole.percent(min(*v.UsedBytes, *p.SizeBytes)), used(*v), title)
		}
		words = append(words, title)
	}
	if len(words) == 0 {
		words = append(words, "no partitions")
	}
	b.Label = name + ", " + output.Size(*d.SizeBytes) + ": " + strings.Join(words, "; ")
	return b
}

func used(v inventory.Volume) string {
	if full(v) {
		return classFull
	}
	return classUsed
}

// volumeBar draws how full a volume is.
func volumeBar(v inventory.Volume) *bar {
	b := &bar{Label: percent(*v.UsedBytes, *v.TotalBytes) + " used"}
	b.add("0%", "100%", classFree, b.Label)
	b.add("0%", scale(*v.TotalBytes).percent(*v.UsedBytes), used(v), b.Label)
	return b
}

// nodeMap draws all disks side by side, and how much of each its volumes use.
func nodeMap(disks []inventory.Disk, shown []disk) *bar {
	var total, taken int64
	for _, d := range disks {
		if d.SizeBytes != nil {
			total += *d.SizeBytes
		}
	}
	if total <= 0 {
		return nil
	}
	b, at := &bar{}, int64(0)
	for i, d := range disks {
		if d.SizeBytes == nil {
			continue
		}
		usedBytes, class := int64(0), classUsed
		for _, p := range d.Partitions {
			if p.Volume != nil && p.Volume.UsedBytes != nil {
				usedBytes += *p.Volume.UsedBytes
				if full(*p.Volume) {
					class = classFull
				}
			}
		}
		title, base := fmt.Sprintf("%s, %s, %s used", d.Name(), output.Size(*d.SizeBytes), output.Size(usedBytes)), classFree
		switch {
		case d.Online != nil && !*d.Online:
			title, base = fmt.Sprintf("%s, %s, offline", d.Name(), output.Size(*d.SizeBytes)), classOffline
		case len(d.Partitions) == 0:
			title, base = fmt.Sprintf("%s, %s, nothing on it", d.Name(), output.Size(*d.SizeBytes)), classReserved
		}
		x := scale(total).percent(at)
		b.Segments = append(b.Segments, segment{x, scale(total).percent(*d.SizeBytes), base + " edge", title, shown[i].ID})
		if usedBytes > 0 {
			b.Segments = append(b.Segments, segment{x, scale(total).percent(min(usedBytes, *d.SizeBytes)), class, title, shown[i].ID})
		}
		at, taken = at+*d.SizeBytes, taken+usedBytes
	}
	b.Label = fmt.Sprintf("All disks to scale: %s, %s used", output.Size(total), output.Size(taken))
	return b
}
