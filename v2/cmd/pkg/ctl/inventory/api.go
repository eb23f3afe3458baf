package inventory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// maxPartition limits the search for the partition of a volume: the API can list the volumes
// of a partition, but not partitions. Disks of CSI volumes have one or two.
const maxPartition = 16

// fromAPI collects disks and volumes through the published API.
func (s Source) fromAPI(ctx context.Context) (*extensionv1.Node, error) {
	disks, err := s.disksFromAPI(ctx)
	if err != nil {
		return nil, err
	}
	volumes := make([][]*extensionv1.Volume, len(disks))
	var wg sync.WaitGroup
	for i, disk := range disks {
		wg.Go(func() {
			ctx, cancel := s.limited(ctx)
			defer cancel()
			ids, err := s.VolumeIDs(ctx, disk.GetNumber(), 0)
			if err != nil {
				disk.Problems = append(disk.Problems, unknown("volumes", err))
				return
			}
			volumes[i] = s.addVolumes(ctx, disk, ids)
		})
	}
	wg.Wait()
	node := &extensionv1.Node{Disks: disks, Volumes: slices.Concat(volumes...)}
	mergeProblems(node)
	return node, ctx.Err()
}

// limited applies the limit of one disk.
func (s Source) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.diskLimit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, s.diskLimit)
}

// mergeProblems moves problems that several disks share, for example about a group that is not
// served, to the node.
func mergeProblems(node *extensionv1.Node) {
	names, same := map[string][]string{}, map[string]*extensionv1.Problem{}
	for _, d := range node.GetDisks() {
		for _, p := range d.GetProblems() {
			names[p.GetText()], same[p.GetText()] = append(names[p.GetText()], fmt.Sprintf("disk %d", d.GetNumber())), p
		}
	}
	for _, d := range node.GetDisks() {
		d.Problems = slices.DeleteFunc(d.GetProblems(), func(p *extensionv1.Problem) bool { return len(names[p.GetText()]) > 1 })
	}
	for _, text := range slices.Sorted(maps.Keys(names)) {
		if len(names[text]) > 1 {
			same[text].Text = strings.Join(names[text], ", ") + ": " + text
			node.Problems = append(node.Problems, same[text])
		}
	}
}

// disksFromAPI lists the disks by number, without their volumes.
func (s Source) disksFromAPI(ctx context.Context) ([]*extensionv1.Disk, error) {
	var ids diskv1.ListDiskIDsResponse
	var locations diskv1.ListDiskLocationsResponse
	var idErr, locationErr error
	var lists sync.WaitGroup // concurrent, because each of them waits for hung disks
	lists.Go(func() { idErr = s.Client.Do(ctx, "disk", "ListDiskIDs", &diskv1.ListDiskIDsRequest{}, &ids) })
	lists.Go(func() {
		locationErr = s.Client.Do(ctx, "disk", "ListDiskLocations", &diskv1.ListDiskLocationsRequest{}, &locations)
	})
	lists.Wait()
	if err := cmp.Or(idErr, locationErr); err != nil {
		return nil, err
	}
	numbers := map[uint32]bool{} // a disk may be in only one of the lists
	for number := range ids.GetDiskIDs() {
		numbers[number] = true
	}
	for number := range locations.GetDiskLocations() {
		numbers[number] = true
	}
	disks := make([]*extensionv1.Disk, 0, len(numbers))
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		id := ids.GetDiskIDs()[number]
		disks = append(disks, &extensionv1.Disk{
			Number: &number, SerialNumber: strings.TrimSpace(id.GetSerialNumber()), Page83: id.GetPage83(), Location: location(locations.GetDiskLocations()[number]),
		})
	}
	var wg sync.WaitGroup
	for _, disk := range disks {
		wg.Go(func() {
			ctx, cancel := s.limited(ctx)
			defer cancel()
			s.addState(ctx, disk)
		})
	}
	wg.Wait()
	return disks, ctx.Err()
}

// location returns the location of a disk in one word, or nothing if no part of it is known.
func location(at *diskv1.DiskLocation) string {
	text := strings.Join([]string{at.GetAdapter(), at.GetBus(), at.GetTarget(), at.GetLUNID()}, ":")
	if text == ":::" {
		return ""
	}
	return text
}

// addState adds the size of a disk and whether it is online.
func (s Source) addState(ctx context.Context, disk *extensionv1.Disk) {
	var stats diskv1.GetDiskStatsResponse
	if err := s.Client.Do(ctx, "disk", "GetDiskStats", &diskv1.GetDiskStatsRequest{DiskNumber: disk.GetNumber()}, &stats); err == nil {
		disk.SizeBytes = &stats.TotalBytes
	} else {
		disk.Problems = append(disk.Problems, unknown("size", err))
	}
	var state diskv1.GetDiskStateResponse
	if err := s.Client.Do(ctx, "disk", "GetDiskState", &diskv1.GetDiskStateRequest{DiskNumber: disk.GetNumber()}, &state); err == nil {
		disk.Online = &state.IsOnline
	} else {
		disk.Problems = append(disk.Problems, unknown("state", err))
	}
}

// VolumeIDs lists the volumes on a disk, or on one partition of it.
func (s Source) VolumeIDs(ctx context.Context, disk, partition uint32) ([]string, error) {
	var list volumev2alpha1.ListVolumesOnDiskResponse
	request := &volumev2alpha1.ListVolumesOnDiskRequest{DiskNumber: disk, PartitionNumber: partition}
	err := s.Client.Do(ctx, "volume", "ListVolumesOnDisk", request, &list)
	return list.GetVolumeIds(), err
}

// addVolumes adds the partitions of volumes to a disk, of which only the numbers are known, and
// returns the volumes.
func (s Source) addVolumes(ctx context.Context, disk *extensionv1.Disk, ids []string) []*extensionv1.Volume {
	numbers := s.partitions(ctx, disk.GetNumber(), ids)
	volumes := make([]*extensionv1.Volume, 0, len(ids))
	for _, id := range ids {
		volume := s.volume(ctx, id)
		volume.Disks, volume.Partition = []uint32{disk.GetNumber()}, numbers[id]
		disk.Partitions = append(disk.Partitions, &extensionv1.Partition{Number: numbers[id], VolumeId: id})
		volumes = append(volumes, volume)
	}
	return volumes
}

// partitions finds the partition of each volume by querying one partition after another.
func (s Source) partitions(ctx context.Context, disk uint32, ids []string) map[string]uint32 {
	found := map[string]uint32{}
	for partition := uint32(1); partition <= maxPartition && len(found) < len(ids); partition++ {
		on, _ := s.VolumeIDs(ctx, disk, partition)
		for _, id := range on { // empty after an error: no such partition
			if slices.Contains(ids, id) {
				found[id] = partition
			}
		}
	}
	return found
}

// volume returns one volume. If reading its file system fails it skips the size, which would
// fail too.
func (s Source) volume(ctx context.Context, id string) *extensionv1.Volume {
	v := &extensionv1.Volume{Id: id}
	var formatted volumev2alpha1.IsVolumeFormattedResponse
	err := s.Client.Do(ctx, "volume", "IsVolumeFormatted", &volumev2alpha1.IsVolumeFormattedRequest{VolumeId: id}, &formatted)
	switch {
	case err == nil && formatted.GetFormatted():
		v.State = extensionv1.VolumeFormatted
	case err == nil:
		v.State = extensionv1.VolumeRaw
	case locked(err):
		v.State = extensionv1.VolumeLocked
	default:
		v.Problems = append(v.Problems, unknown("file system", err))
	}
	if v.GetState() != extensionv1.VolumeFormatted {
		return v
	}
	var stats volumev2alpha1.GetVolumeStatsResponse
	if err := s.Client.Do(ctx, "volume", "GetVolumeStats", &volumev2alpha1.GetVolumeStatsRequest{VolumeId: id}, &stats); err == nil {
		v.TotalBytes, v.UsedBytes = &stats.TotalBytes, &stats.UsedBytes
	} else {
		v.Problems = append(v.Problems, unknown("size", err))
	}
	return v
}

// unknown is the problem that a call could not answer something.
func unknown(object string, err error) *extensionv1.Problem {
	p := &extensionv1.Problem{Kind: extensionv1.ProblemFailure, Object: object, Text: object + ": " + Reason(err)}
	p.WindowsCode, _ = failure.WindowsCode(err)
	if code := status.Code(err); p.GetWindowsCode() == 0 && (code == codes.DeadlineExceeded || code == codes.Unavailable) {
		p.Kind = extensionv1.ProblemSilence
	}
	return p
}

// locked reports whether BitLocker locks a volume: FVE_E_LOCKED_VOLUME.
func locked(err error) bool {
	code, _ := failure.WindowsCode(err)
	return code == 0x80310000
}
