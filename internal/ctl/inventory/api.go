package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
)

// maxPartition limits the search for the partition of a volume: the API can list the volumes
// of a partition, but not partitions. Disks of CSI volumes have one or two.
const maxPartition = 16

// fromAPI collects disks and volumes through the published API.
func (s Source) fromAPI(ctx context.Context) (Node, error) {
	disks, err := s.disksFromAPI(ctx)
	if err != nil {
		return Node{}, err
	}
	var wg sync.WaitGroup
	for i := range disks {
		wg.Go(func() {
			ids, err := s.VolumeIDs(ctx, *disks[i].Number, 0)
			if err != nil {
				disks[i].noAnswer("volumes", err)
				return
			}
			s.addVolumes(ctx, &disks[i], ids)
		})
	}
	wg.Wait()
	node := Node{Disks: disks, Volumes: []Volume{}, Shares: []Share{}, StaleMounts: []StaleMount{}, Paths: []Path{}, Warnings: []Warning{}}
	node.mergeNoAnswers()
	return node, ctx.Err()
}

// disksFromAPI lists the disks by number, without their volumes.
func (s Source) disksFromAPI(ctx context.Context) ([]Disk, error) {
	var ids diskv1.ListDiskIDsResponse
	var locations diskv1.ListDiskLocationsResponse
	var idErr, locationErr error
	var lists sync.WaitGroup // concurrent, because each of them waits for hung disks
	lists.Go(func() { idErr = s.Client.Do(ctx, "disk", "ListDiskIDs", &diskv1.ListDiskIDsRequest{}, &ids) })
	lists.Go(func() {
		locationErr = s.Client.Do(ctx, "disk", "ListDiskLocations", &diskv1.ListDiskLocationsRequest{}, &locations)
	})
	lists.Wait()
	if idErr != nil && !call.Absent(idErr) {
		return nil, idErr
	}
	if locationErr != nil {
		return nil, locationErr
	}
	numbers := map[uint32]bool{} // a disk may be in only one of the lists
	for number := range ids.GetDiskIDs() {
		numbers[number] = true
	}
	for number := range locations.GetDiskLocations() {
		numbers[number] = true
	}
	disks := make([]Disk, 0, len(numbers))
	for _, number := range slices.Sorted(maps.Keys(numbers)) {
		id := ids.GetDiskIDs()[number]
		disk := Disk{Number: &number, SerialNumber: strings.TrimSpace(id.GetSerialNumber()), Page83: id.GetPage83(), Partitions: []Partition{}, Warnings: []Warning{}}
		if l := locations.GetDiskLocations()[number]; l != nil {
			disk.Location = location(l.GetAdapter(), l.GetBus(), l.GetTarget(), l.GetLUNID())
		}
		disks = append(disks, disk)
	}
	var wg sync.WaitGroup
	for i := range disks {
		wg.Go(func() { s.addState(ctx, &disks[i]) })
	}
	wg.Wait()
	return disks, ctx.Err()
}

// location returns the location of a disk in one word, or nothing if no part of it is known.
func location(adapter, bus, target, lun string) string {
	if adapter+bus+target+lun == "" {
		return ""
	}
	return strings.Join([]string{adapter, bus, target, lun}, ":")
}

// addState adds the size of a disk and whether it is online. Old versions do not have it.
func (s Source) addState(ctx context.Context, disk *Disk) {
	var stats diskv1.GetDiskStatsResponse
	if err := s.Client.Do(ctx, "disk", "GetDiskStats", &diskv1.GetDiskStatsRequest{DiskNumber: *disk.Number}, &stats); err == nil {
		disk.SizeBytes = &stats.TotalBytes
	} else if !call.Absent(err) {
		disk.noAnswer("size", err)
	}
	var state diskv1.GetDiskStateResponse
	if err := s.Client.Do(ctx, "disk", "GetDiskState", &diskv1.GetDiskStateRequest{DiskNumber: *disk.Number}, &state); err == nil {
		disk.Online = &state.IsOnline
	} else if !call.Absent(err) {
		disk.noAnswer("state", err)
	}
}

func (d *Disk) noAnswer(what string, err error) {
	d.Warnings = append(d.Warnings, Warning{Kind: NoAnswer, Text: what + ": " + Reason(err)})
}

// VolumeIDs lists the volumes on a disk, or on one partition of it.
func (s Source) VolumeIDs(ctx context.Context, disk, partition uint32) ([]string, error) {
	var list volumev2alpha1.ListVolumesOnDiskResponse
	request := &volumev2alpha1.ListVolumesOnDiskRequest{DiskNumber: disk, PartitionNumber: partition}
	err := s.Client.Do(ctx, "volume", "ListVolumesOnDisk", request, &list)
	return list.GetVolumeIds(), err
}

// addVolumes adds volumes to a disk, in partitions of which only the number is known.
func (s Source) addVolumes(ctx context.Context, disk *Disk, ids []string) {
	numbers := s.partitions(ctx, *disk.Number, ids)
	for _, id := range ids {
		volume := s.volume(ctx, id)
		volume.Disks = []uint32{*disk.Number}
		disk.Partitions = append(disk.Partitions, Partition{Number: numbers[id], Volume: &volume})
	}
}

// partitions finds the partition of each volume by querying one partition after another.
func (s Source) partitions(ctx context.Context, disk uint32, ids []string) map[string]uint32 {
	found := map[string]uint32{}
	for partition := uint32(1); partition <= maxPartition && len(found) < len(ids); partition++ {
		on, err := s.VolumeIDs(ctx, disk, partition)
		if call.Absent(err) {
			break
		}
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
func (s Source) volume(ctx context.Context, id string) Volume {
	v := Volume{ID: id, State: Unknown, MountPaths: []string{}, Links: []string{}, Warnings: []Warning{}}
	noAnswer := func(what string, err error) {
		v.Warnings = append(v.Warnings, Warning{Kind: NoAnswer, Text: fmt.Sprintf("%s: %s", what, Reason(err))})
	}
	var formatted volumev2alpha1.IsVolumeFormattedResponse
	err := s.Client.Do(ctx, "volume", "IsVolumeFormatted", &volumev2alpha1.IsVolumeFormattedRequest{VolumeId: id}, &formatted)
	switch {
	case err == nil && formatted.GetFormatted():
		v.State = Formatted
	case err == nil:
		v.State = Raw
	case locked(err):
		v.State = Locked
	default:
		noAnswer("file system", err)
	}
	if v.State != Formatted {
		return v
	}
	var stats volumev2alpha1.GetVolumeStatsResponse
	if err := s.Client.Do(ctx, "volume", "GetVolumeStats", &volumev2alpha1.GetVolumeStatsRequest{VolumeId: id}, &stats); err == nil {
		v.TotalBytes, v.UsedBytes = &stats.TotalBytes, &stats.UsedBytes
	} else if !call.Absent(err) {
		noAnswer("size", err)
	}
	return v
}

// locked reports whether BitLocker locks a volume. Only the error number shows it:
// FVE_E_LOCKED_VOLUME (0x80310000).
func locked(err error) bool { return strings.Contains(err.Error(), "(Windows error 0x80310000)") }
