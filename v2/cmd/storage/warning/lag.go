package warning

import (
	"fmt"
	"strings"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

const (
	// lagBytes is the unused space that is normal: rounding and the tables at the end of the
	// disk take less.
	lagBytes = 16 << 20

	// mbrEnd is the highest end of a partition on an MBR disk.
	mbrEnd = 2 << 40
)

// lag warns of a file system that is smaller than its partition, or than the rest of the
// disk for the last partition. Only NTFS outside the system disk can grow.
func (f *finder) lag(v *extensionv1.Volume) {
	d, p := f.partitionOf(v)
	if p == nil || d.GetSystem() || d.SizeBytes == nil || v.TotalBytes == nil {
		return
	}
	possible := d.GetSizeBytes()
	switch {
	case p.GetSizeBytes() == 0: // from the API
		if !seemsToLag(d, v) {
			return
		}
	case !strings.EqualFold(v.GetFileSystem(), "NTFS") || p.GetType() != "data" || p.GetOffsetBytes() == 0: // a file system without a partition cannot grow
		return
	default:
		possible = p.GetSizeBytes()
		if end := endOf(d); end-endOfPartition(p) > lagBytes && isLast(d, p) {
			possible = end - p.GetOffsetBytes()
		}
		if possible-v.GetTotalBytes() <= lagBytes {
			return
		}
	}
	f.add(Warning{
		Kind: Lagging, Object: Object{Volume, v.GetId()},
		Text: fmt.Sprintf("lagging: the file system has %s and can grow to %s", printable.Size(v.GetTotalBytes()), printable.Size(possible)),
		Run:  "csi-proxyctl volume resize " + ShortID(v.GetId()) + " max",
	})
}

// partitionOf returns the partition that is a volume, or nil.
func (f *finder) partitionOf(v *extensionv1.Volume) (*extensionv1.Disk, *extensionv1.Partition) {
	for _, d := range f.node.GetDisks() {
		for _, p := range d.GetPartitions() {
			if p.GetVolumeId() == v.GetId() {
				return d, p
			}
		}
	}
	return nil, nil
}

func endOfPartition(p *extensionv1.Partition) int64 { return p.GetOffsetBytes() + p.GetSizeBytes() }

func isLast(d *extensionv1.Disk, p *extensionv1.Partition) bool {
	for _, other := range d.GetPartitions() {
		if endOfPartition(other) > endOfPartition(p) {
			return false
		}
	}
	return true
}

// endOf returns the highest possible end of a partition.
func endOf(d *extensionv1.Disk) int64 {
	if d.GetPartitionStyle() == "MBR" {
		return min(d.GetSizeBytes(), mbrEnd)
	}
	return d.GetSizeBytes()
}

// seemsToLag decides for a disk whose partition sizes are unknown. With several volumes it
// cannot know what the rest of the disk holds, and returns false.
func seemsToLag(d *extensionv1.Disk, v *extensionv1.Volume) bool {
	const (
		reserved = 160 << 20 // reserved partition and tables
		share    = 50
	)
	if len(d.GetPartitions()) != 1 {
		return false
	}
	rest := d.GetSizeBytes() - v.GetTotalBytes()
	return rest > reserved && rest > d.GetSizeBytes()/share
}
