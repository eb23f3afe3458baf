package problem

import (
	"errors"
	"fmt"
	"slices"
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

// Limits say when a volume is full: more than Percent of it is used, and less than Bytes are free. A large volume with
// little free in percent has room for long.
type Limits struct {
	Percent uint32
	Bytes   int64
}

// DefaultLimits are those of the daemon's flag.
var DefaultLimits = Limits{Percent: 90, Bytes: 20 << 30}

const limitsForm = "%d%%,%dGiB"

// String implements flag.Value.
func (l *Limits) String() string { return fmt.Sprintf(limitsForm, l.Percent, l.Bytes>>30) }

// Set implements flag.Value.
func (l *Limits) Set(text string) error {
	var found Limits
	_, err := fmt.Sscanf(text, limitsForm, &found.Percent, &found.Bytes)
	if found.Bytes <<= 30; err != nil || found.Percent > 100 || found.Bytes <= 0 || found.String() != text {
		return errors.New("it is not like " + DefaultLimits.String())
	}
	*l = found
	return nil
}

// noRoom are the limits at which writes are about to fail.
var noRoom = Limits{Percent: 99, Bytes: 1 << 30}

func (l Limits) reached(v *extensionv1.Volume) bool {
	return float64(v.GetUsedBytes())*100 > float64(v.GetTotalBytes())*float64(l.Percent) && v.GetTotalBytes()-v.GetUsedBytes() < l.Bytes
}

// space warns of a volume that is almost full, and of one that can grow. One that is both has one remedy. Volumes of the
// firmware, of recovery and on discs are as full as they were made.
func (f *finder) space(v *extensionv1.Volume, affected []string) {
	d, p := f.partitionOf(v)
	grow := Problem{Kind: Lagging, Object: Object{Volume, v.GetId()}}
	possible, lags := f.lag(d, p, v)
	if lags {
		grow.Text = fmt.Sprintf("lagging: the file system has %s and can grow to %s", printable.Size(v.GetTotalBytes()), printable.Size(possible))
		grow.Run = "csi-proxyctl volume resize " + ShortID(v.GetId()) + " max"
	}
	made := slices.Contains([]string{"efi", "reserved", "recovery"}, p.GetType()) || slices.Contains([]string{"CDFS", "UDF"}, v.GetFileSystem())
	if made || v.GetReadOnly() || v.TotalBytes == nil || v.UsedBytes == nil || v.GetTotalBytes() <= 0 || !f.limits.reached(v) {
		if lags {
			f.add(grow)
		}
		return
	}
	full := Problem{
		Kind: Full, Object: grow.Object, Run: grow.Run, Affects: slices.DeleteFunc(affected, isDrive), Advice: "remove files from it", Severity: WillHurt,
		// Only a volume without any free space is 100% full.
		Text: fmt.Sprintf("%s%d%% full: %s of %s used", drive(v), int64(float64(v.GetUsedBytes())/float64(v.GetTotalBytes())*100), printable.Size(v.GetUsedBytes()), printable.Size(v.GetTotalBytes())),
	}
	switch {
	case lags:
		full.Text += ", and it can grow to " + printable.Size(possible)
		full.Advice = "or remove files from it"
	case drive(v) == "": // drivers assign no letters
		full.Advice += ", or grow its claim"
	}
	switch users := full.complete(); {
	case d.GetSystem() && noRoom.reached(v), len(users.Pods) > 0 && noRoom.reached(v):
		full.Severity = Hurts
	case !d.GetSystem() && len(users.Pods) == 0 && len(full.Affects) == 0:
		full.Severity = Note
	}
	f.add(full)
}

// lag returns how large a file system can be that is smaller than its partition, or than the rest of the
// disk for the last partition. Only NTFS outside the system disk can grow.
func (f *finder) lag(d *extensionv1.Disk, p *extensionv1.Partition, v *extensionv1.Volume) (possible int64, lags bool) {
	if p == nil || d.GetSystem() || d.SizeBytes == nil || v.TotalBytes == nil {
		return 0, false
	}
	if !strings.EqualFold(v.GetFileSystem(), "NTFS") || p.GetType() != "data" || p.GetOffsetBytes() == 0 { // a file system without a partition cannot grow
		return 0, false
	}
	possible = p.GetSizeBytes()
	if end := endOf(d); end-endOfPartition(p) > lagBytes && isLast(d, p) {
		possible = end - p.GetOffsetBytes()
	}
	return possible, possible-v.GetTotalBytes() > lagBytes
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
