package grpcapi

import (
	"context"
	"slices"
	"strings"
	"unicode"

	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// diskV1alpha1 has disk numbers as text and finds a disk by name.
type diskV1alpha1 struct{ disk disk.Interface }

var _ diskv1alpha1.DiskServer = diskV1alpha1{}

func newDiskV1alpha1(s Services) any { return diskV1alpha1{s.Disk} }

func (s diskV1alpha1) ListDiskLocations(ctx context.Context, _ *diskv1alpha1.ListDiskLocationsRequest) (*diskv1alpha1.ListDiskLocationsResponse, error) {
	out, err := responseOf(s.disk.ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{}))
	locations := byText(out.DiskLocations, func(at *disk.DiskLocation) *diskv1alpha1.DiskLocation {
		return &diskv1alpha1.DiskLocation{Adapter: at.Adapter, Bus: at.Bus, Target: at.Target, LUNID: at.LUNID}
	})
	return &diskv1alpha1.ListDiskLocationsResponse{DiskLocations: locations}, err
}

func (s diskV1alpha1) PartitionDisk(ctx context.Context, in *diskv1alpha1.PartitionDiskRequest) (*diskv1alpha1.PartitionDiskResponse, error) {
	number, err := parseDiskNumber(in.DiskID)
	if err != nil {
		return nil, err
	}
	return empty[diskv1alpha1.PartitionDiskResponse](s.disk.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: number}))
}

func (s diskV1alpha1) Rescan(ctx context.Context, _ *diskv1alpha1.RescanRequest) (*diskv1alpha1.RescanResponse, error) {
	return empty[diskv1alpha1.RescanResponse](s.disk.Rescan(ctx, &disk.RescanRequest{}))
}

// GetDiskNumberByName searches the ids of all disks, which the library lists for the
// driver to choose from.
func (s diskV1alpha1) GetDiskNumberByName(ctx context.Context, in *diskv1alpha1.GetDiskNumberByNameRequest) (*diskv1alpha1.GetDiskNumberByNameResponse, error) {
	out, err := s.disk.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	if err != nil {
		return nil, err
	}
	number, err := findDisk(in.DiskName, out.DiskIDs)
	if err != nil {
		return nil, err
	}
	return &diskv1alpha1.GetDiskNumberByNameResponse{DiskNumber: formatDiskNumber(number)}, nil
}

// nameRules are the ways a name may match a disk. The first rule that matches any disk
// decides.
var nameRules = []func(name string, ids *disk.DiskIDs) bool{
	func(name string, ids *disk.DiskIDs) bool { return ids.Page83 == name },
	// Page 83 may put the vendor before the name, as in "Google  pvc-1234".
	func(name string, ids *disk.DiskIDs) bool {
		words := strings.Fields(ids.Page83)
		return len(words) > 0 && words[len(words)-1] == name
	},
	func(name string, ids *disk.DiskIDs) bool { return ids.SerialNumber == name },
}

// findDisk returns the disk that matches the name. Several matches are an error, because
// the driver is about to partition the disk.
func findDisk(name string, disks map[uint32]*disk.DiskIDs) (uint32, error) {
	const op = "find disk"
	object := quote(name)
	if name == "" { // it would match every disk without an id
		return 0, winerr.New(winerr.Invalid, op, object, "the name is empty")
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return 0, winerr.New(winerr.Invalid, op, object, "the name has control characters, which no id of a disk has")
	}
	for _, fits := range nameRules {
		var found []uint32
		for number, ids := range disks {
			if fits(name, ids) {
				found = append(found, number)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		if len(found) > 1 {
			slices.Sort(found)
			return 0, winerr.New(winerr.Invalid, op, object, "disks %d all have this name", found)
		}
	}
	return 0, winerr.New(winerr.NotFound, op, object, "no disk has this name")
}
