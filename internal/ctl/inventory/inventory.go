// Package inventory puts together what the API tells of a node's storage: its disks, their
// volumes, and what is odd about them.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/status"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/call"
)

// Node is a node's storage. What could not be found out is nil, and a warning says why.
type Node struct {
	Serial   string   `json:"serial"`
	Disks    []Disk   `json:"disks"`
	Paths    []Path   `json:"paths"`
	Warnings []string `json:"warnings"`
}

// Disk is a disk with its volumes.
type Disk struct {
	Number       uint32   `json:"number"`
	SizeBytes    *int64   `json:"sizeBytes"`
	Online       *bool    `json:"online"`
	SerialNumber string   `json:"serialNumber"`
	Page83       string   `json:"page83"`
	Location     string   `json:"location"`
	Volumes      []Volume `json:"volumes"`
	Warnings     []string `json:"warnings"`
}

// Volume is a volume on a disk.
type Volume struct {
	ID         string   `json:"id"`
	Partition  uint32   `json:"partition"` // 0: not found out
	Formatted  *bool    `json:"formatted"`
	TotalBytes *int64   `json:"totalBytes"`
	UsedBytes  *int64   `json:"usedBytes"`
	MountPaths []string `json:"mountPaths"`
	Warnings   []string `json:"warnings"`
}

// Path is a path that was asked for, and where it leads.
type Path struct {
	Path     string   `json:"path"`
	VolumeID string   `json:"volumeID"`
	Leads    bool     `json:"leads"` // to the volume itself, not only to files on it
	Warnings []string `json:"warnings"`
}

// Source is where an inventory comes from.
type Source struct {
	Client *call.Client
	// Mounts returns the paths of a volume, where the system tells; the API does not.
	Mounts func(volumeID string) ([]string, error)
}

// maxPartition bounds the search for the partition of a volume. The API cannot list
// partitions, but tells the volumes of one. Disks of CSI volumes have one or two.
const maxPartition = 16

// Node looks at the whole node, and at the paths given. It fails only if the disks cannot
// be listed at all.
func (s Source) Node(ctx context.Context, paths []string) (Node, error) {
	disks, err := s.Disks(ctx)
	if err != nil {
		return Node{}, err
	}
	node := Node{Disks: disks, Paths: make([]Path, len(paths)), Warnings: []string{}}
	var bios systemv1alpha1.GetBIOSSerialNumberResponse
	if err := s.Client.Do(ctx, "system", "GetBIOSSerialNumber", &systemv1alpha1.GetBIOSSerialNumberRequest{}, &bios); err != nil {
		node.Warnings = append(node.Warnings, "serial number of the machine: "+Reason(err))
	}
	node.Serial = bios.GetSerialNumber()
	var wg sync.WaitGroup
	for i := range node.Disks {
		wg.Go(func() { s.volumes(ctx, &node.Disks[i]) })
	}
	for i, path := range paths {
		wg.Go(func() { node.Paths[i] = s.path(ctx, path) })
	}
	wg.Wait()
	return node, ctx.Err()
}

// Disks lists the disks, by number, without their volumes.
func (s Source) Disks(ctx context.Context) ([]Disk, error) {
	var ids diskv1.ListDiskIDsResponse
	var locations diskv1.ListDiskLocationsResponse
	idErr := s.Client.Do(ctx, "disk", "ListDiskIDs", &diskv1.ListDiskIDsRequest{}, &ids)
	if idErr != nil && !call.Absent(idErr) {
		return nil, idErr
	}
	if err := s.Client.Do(ctx, "disk", "ListDiskLocations", &diskv1.ListDiskLocationsRequest{}, &locations); err != nil {
		return nil, err
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
		disk := Disk{Number: number, SerialNumber: strings.TrimSpace(id.GetSerialNumber()), Page83: id.GetPage83(), Volumes: []Volume{}, Warnings: []string{}}
		if l := locations.GetDiskLocations()[number]; l != nil {
			disk.Location = Location(l)
		}
		disks = append(disks, disk)
	}
	var wg sync.WaitGroup
	for i := range disks {
		wg.Go(func() { s.state(ctx, &disks[i]) })
	}
	wg.Wait()
	return disks, ctx.Err()
}

// Location writes where a disk is attached, in one word.
func Location(l *diskv1.DiskLocation) string {
	return fmt.Sprintf("%s:%s:%s:%s", l.GetAdapter(), l.GetBus(), l.GetTarget(), l.GetLUNID())
}

// state asks for the size of a disk and whether it is online. Old versions cannot tell.
func (s Source) state(ctx context.Context, disk *Disk) {
	var stats diskv1.GetDiskStatsResponse
	if err := s.Client.Do(ctx, "disk", "GetDiskStats", &diskv1.GetDiskStatsRequest{DiskNumber: disk.Number}, &stats); err == nil {
		disk.SizeBytes = &stats.TotalBytes
	} else if !call.Absent(err) {
		disk.warn("size: %s", Reason(err))
	}
	var state diskv1.GetDiskStateResponse
	if err := s.Client.Do(ctx, "disk", "GetDiskState", &diskv1.GetDiskStateRequest{DiskNumber: disk.Number}, &state); err == nil {
		disk.Online = &state.IsOnline
	} else if !call.Absent(err) {
		disk.warn("state: %s", Reason(err))
	}
}

func (d *Disk) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

// volumes looks at the volumes of a disk.
func (s Source) volumes(ctx context.Context, disk *Disk) {
	if disk.Online != nil && !*disk.Online {
		disk.warn("offline: its volumes cannot be seen")
	}
	ids, err := s.VolumeIDs(ctx, disk.Number, 0)
	if err != nil {
		disk.warn("volumes: %s", Reason(err))
		return
	}
	if len(ids) == 0 && (disk.Online == nil || *disk.Online) {
		disk.warn("no volume: blank, or not partitioned for Windows")
	}
	partitions := s.partitions(ctx, disk.Number, ids)
	for _, id := range ids {
		disk.Volumes = append(disk.Volumes, s.Volume(ctx, id, partitions[id]))
	}
	disk.lag()
}

// VolumeIDs lists the volumes on a disk, or on one partition of it.
func (s Source) VolumeIDs(ctx context.Context, disk, partition uint32) ([]string, error) {
	var list volumev2alpha1.ListVolumesOnDiskResponse
	request := &volumev2alpha1.ListVolumesOnDiskRequest{DiskNumber: disk, PartitionNumber: partition}
	err := s.Client.Do(ctx, "volume", "ListVolumesOnDisk", request, &list)
	return list.GetVolumeIds(), err
}

// partitions finds the partition of each volume, by asking partition after partition.
func (s Source) partitions(ctx context.Context, disk uint32, ids []string) map[string]uint32 {
	found := map[string]uint32{}
	for partition := uint32(1); partition <= maxPartition && len(found) < len(ids); partition++ {
		on, err := s.VolumeIDs(ctx, disk, partition)
		if call.Absent(err) {
			break
		}
		for _, id := range on { // none, with an error: there is no such partition
			found[id] = partition
		}
	}
	return found
}

// Volume looks at one volume.
func (s Source) Volume(ctx context.Context, id string, partition uint32) Volume {
	volume := Volume{ID: id, Partition: partition, MountPaths: []string{}, Warnings: []string{}}
	warn := func(format string, args ...any) {
		volume.Warnings = append(volume.Warnings, fmt.Sprintf(format, args...))
	}
	if s.Mounts != nil {
		if paths, err := s.Mounts(id); err == nil {
			volume.MountPaths = append(volume.MountPaths, paths...)
		}
	}
	var formatted volumev2alpha1.IsVolumeFormattedResponse
	if err := s.Client.Do(ctx, "volume", "IsVolumeFormatted", &volumev2alpha1.IsVolumeFormattedRequest{VolumeId: id}, &formatted); err != nil {
		warn("file system: %s", Reason(err))
	} else {
		volume.Formatted = &formatted.Formatted
	}
	if volume.Formatted != nil && !*volume.Formatted {
		warn("RAW: no file system")
		return volume
	}
	var stats volumev2alpha1.GetVolumeStatsResponse
	if err := s.Client.Do(ctx, "volume", "GetVolumeStats", &volumev2alpha1.GetVolumeStatsRequest{VolumeId: id}, &stats); err == nil {
		volume.TotalBytes, volume.UsedBytes = &stats.TotalBytes, &stats.UsedBytes
		if stats.TotalBytes > 0 && stats.UsedBytes > stats.TotalBytes/10*9 {
			warn("more than 90%% full")
		}
	} else if !call.Absent(err) {
		warn("size: %s", Reason(err))
	}
	return volume
}

// lagShare is which part of a disk, and lagBytes how much of it, may lie outside its
// volumes before it looks like a disk that has grown: tables and the partition that
// Windows reserves take less.
const (
	lagShare = 50
	lagBytes = 512 << 20
)

// lag warns of a disk that has grown beyond its only volume. With more volumes the API does
// not tell what the rest of the disk is for.
func (d *Disk) lag() {
	if len(d.Volumes) != 1 || d.SizeBytes == nil || d.Volumes[0].TotalBytes == nil {
		return
	}
	if rest := *d.SizeBytes - *d.Volumes[0].TotalBytes; rest > lagBytes && rest > *d.SizeBytes/lagShare {
		volume := &d.Volumes[0]
		volume.Warnings = append(volume.Warnings, "the file system lags behind its disk: csi-proxyctl volume resize")
	}
}

// Reason is an error as a clause: gRPC's message without its frame.
func Reason(err error) string {
	if s, ok := status.FromError(err); ok && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("%s (%s)", s.Message(), s.Code())
	}
	return err.Error()
}
