package webpage

import (
	"fmt"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
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

// diskBar draws the partitions of a disk.
func (b *builder) diskBar(name string, d *extensionv1.Disk) *bar {
	if d.GetSizeBytes() <= 0 {
		return nil
	}
	drawn, whole, words := &bar{}, scale(d.GetSizeBytes()), []string{}
	for _, p := range d.GetPartitions() {
		title := strings.TrimSpace(fmt.Sprintf("partition %d, %s %s", p.GetNumber(), output.Size(p.GetSizeBytes()), p.GetType()))
		x, width := whole.percent(p.GetOffsetBytes()), whole.percent(p.GetSizeBytes())
		switch v := b.node.Volume(p.GetVolumeId()); {
		case d.Online != nil && !d.GetOnline():
			drawn.add(x, width, classOffline, title)
		case v == nil:
			drawn.add(x, width, classReserved, title)
		case v.UsedBytes == nil:
			title += ", " + fileSystem(v).Text
			drawn.add(x, width, classUnknown, title)
		default:
			title += fmt.Sprintf(", %s used", output.Size(v.GetUsedBytes()))
			drawn.add(x, width, classFree, title)
			drawn.add(x, whole.percent(min(v.GetUsedBytes(), p.GetSizeBytes())), b.used(v), title)
		}
		words = append(words, title)
	}
	if len(words) == 0 {
		words = append(words, "no partitions")
	}
	drawn.Label = name + ", " + output.Size(d.GetSizeBytes()) + ": " + strings.Join(words, "; ")
	return drawn
}

func (b *builder) used(v *extensionv1.Volume) string {
	if b.full(v) != "" {
		return classFull
	}
	return classUsed
}

func (b *builder) volumeBar(v *extensionv1.Volume) *bar {
	drawn := &bar{Label: fmt.Sprintf("%d%% used", inventory.Percent(v))}
	drawn.add("0%", "100%", classFree, drawn.Label)
	drawn.add("0%", scale(v.GetTotalBytes()).percent(v.GetUsedBytes()), b.used(v), drawn.Label)
	return drawn
}

// nodeMap draws all disks side by side, and how much of each its volumes use.
func (b *builder) nodeMap() *bar {
	var total, taken int64
	for _, d := range b.node.GetDisks() {
		total += d.GetSizeBytes()
	}
	if total <= 0 {
		return nil
	}
	drawn, at := &bar{}, int64(0)
	for i, d := range b.node.GetDisks() {
		if d.SizeBytes == nil {
			continue
		}
		usedBytes, class := int64(0), classUsed
		for _, p := range d.GetPartitions() {
			v := b.node.Volume(p.GetVolumeId())
			usedBytes += v.GetUsedBytes()
			if v != nil && b.full(v) != "" {
				class = classFull
			}
		}
		title, base := fmt.Sprintf("%s, %s, ", problem.DiskObject(d).Name(), output.Size(d.GetSizeBytes())), classFree
		switch {
		case d.Online != nil && !d.GetOnline():
			title, base = title+"offline", classOffline
		case len(d.GetPartitions()) == 0:
			title, base = title+"nothing on it", classReserved
		default:
			title += output.Size(usedBytes) + " used"
		}
		x := scale(total).percent(at)
		drawn.Segments = append(drawn.Segments, segment{x, scale(total).percent(d.GetSizeBytes()), base + " edge", title, b.Disks[i].ID})
		if usedBytes > 0 {
			drawn.Segments = append(drawn.Segments, segment{x, scale(total).percent(min(usedBytes, d.GetSizeBytes())), class, title, b.Disks[i].ID})
		}
		at, taken = at+d.GetSizeBytes(), taken+usedBytes
	}
	drawn.Label = fmt.Sprintf("All disks to scale: %s, %s used", output.Size(total), output.Size(taken))
	return drawn
}
