package hosttest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// VolumeNode is a node under test. Fields that cannot be had stay empty; the cases that
// need them are skipped.
type VolumeNode struct {
	// API is what is tested. Its errors must match those of io/fs.
	API volume.Interface
	// Disks makes volumes of empty disks, and notices when they grow.
	Disks disk.Interface

	// Root is an existing directory on NTFS that the suite may fill as it likes.
	Root string
	// Empty are two disks without anything on them, of EmptySize bytes each, which are
	// a multiple of 1 GiB.
	Empty     [2]uint32
	EmptySize int64
	// Suspect are volumes in which Windows sees no file system although they are not
	// empty, or of which it cannot tell, by a name for why. They must never be taken
	// for empty.
	Suspect map[string]string
	// System is the volume of Windows.
	System string
	// MissingDisk is a number that no disk has, Missing an id that no volume has.
	MissingDisk uint32
	Missing     string

	// WriteFile and ReadFile reach the node's files past the API, and Symlink makes a
	// directory link, as package filesystem does to publish a volume.
	WriteFile func(path, content string) error
	ReadFile  func(path string) (string, error)
	Symlink   func(path, target string) error
	// Grow makes a disk larger, as its backend would.
	Grow func(disk uint32, size int64) error
	// Detach takes a disk away, as its backend would.
	Detach func(disk uint32) error
	// Content returns something that changes when a byte of a volume does.
	Content func(volumeID string) (string, error)

	// Lacks names methods that this API does not have at all, because its version is
	// older than they are, and "partitions" if it cannot list those of one partition.
	Lacks []string
}

// ErrNoSpace is what an error of API must match when a disk is too small. The standard
// library has no word for it.
var ErrNoSpace error = winerr.NoSpace

// Volume runs the cases of the volume group. newNode is called once per case.
func Volume(t *testing.T, newNode func(t *testing.T) VolumeNode) {
	t.Helper()
	for _, c := range volumeCases {
		t.Run(c.name, func(t *testing.T) {
			n := &volumeNode{VolumeNode: newNode(t), t: t}
			for _, method := range c.uses {
				if slices.Contains(n.Lacks, method) {
					t.Skipf("this version of the API has no %s", method)
				}
			}
			c.run(n)
		})
	}
}

// volumeNode gives the cases short names for the calls.
type volumeNode struct {
	VolumeNode
	t *testing.T
}

func (n *volumeNode) path(names ...string) string {
	return strings.TrimSuffix(n.Root, `\`) + `\` + strings.Join(names, `\`)
}

func (n *volumeNode) ctx() context.Context { return n.t.Context() }

func (n *volumeNode) need(what string, have bool) {
	n.t.Helper()
	if !have {
		n.t.Skipf("this node has no %s", what)
	}
}

func (n *volumeNode) list(disk, partition uint32) ([]string, error) {
	response, err := n.API.ListVolumesOnDisk(n.ctx(), &volume.ListVolumesOnDiskRequest{DiskNumber: disk, PartitionNumber: partition})
	if err != nil {
		return nil, err
	}
	return response.VolumeIDs, nil
}

func (n *volumeNode) isFormatted(id string) (bool, error) {
	response, err := n.API.IsVolumeFormatted(n.ctx(), &volume.IsVolumeFormattedRequest{VolumeID: id})
	if err != nil {
		return false, err
	}
	return response.Formatted, nil
}

func (n *volumeNode) format(id string) error {
	_, err := n.API.FormatVolume(n.ctx(), &volume.FormatVolumeRequest{VolumeID: id})
	return err
}

func (n *volumeNode) mount(id, path string) error {
	_, err := n.API.MountVolume(n.ctx(), &volume.MountVolumeRequest{VolumeID: id, TargetPath: path})
	return err
}

func (n *volumeNode) unmount(id, path string) error {
	_, err := n.API.UnmountVolume(n.ctx(), &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path})
	return err
}

func (n *volumeNode) resize(id string, size int64) error {
	_, err := n.API.ResizeVolume(n.ctx(), &volume.ResizeVolumeRequest{VolumeID: id, SizeBytes: size})
	return err
}

func (n *volumeNode) flush(id string) error {
	_, err := n.API.WriteVolumeCache(n.ctx(), &volume.WriteVolumeCacheRequest{VolumeID: id})
	return err
}

func (n *volumeNode) stats(id string) (*volume.GetVolumeStatsResponse, error) {
	return n.API.GetVolumeStats(n.ctx(), &volume.GetVolumeStatsRequest{VolumeID: id})
}

func (n *volumeNode) mounted(path string) (string, error) {
	response, err := n.API.GetVolumeIDFromTargetPath(n.ctx(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	if err != nil {
		return "", err
	}
	return response.VolumeID, nil
}

func (n *volumeNode) closest(path string) (string, error) {
	response, err := n.API.GetClosestVolumeIDFromTargetPath(n.ctx(), &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path})
	if err != nil {
		return "", err
	}
	return response.VolumeID, nil
}

func (n *volumeNode) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// newVolume makes a volume on an empty disk and returns its id.
func (n *volumeNode) newVolume(number uint32) string {
	n.t.Helper()
	_, err := n.Disks.PartitionDisk(n.ctx(), &disk.PartitionDiskRequest{DiskNumber: number})
	n.must(err)
	ids, err := n.list(number, 0)
	if err != nil || len(ids) != 1 {
		n.t.Fatalf("the volumes of disk %d are %q, %v, want one", number, ids, err)
	}
	return ids[0]
}

// newFormatted makes a formatted volume on an empty disk and returns its id.
func (n *volumeNode) newFormatted(number uint32) string {
	n.t.Helper()
	id := n.newVolume(number)
	n.must(n.format(id))
	return id
}

func (n *volumeNode) wantFormatted(id string, want bool) {
	n.t.Helper()
	if got, err := n.isFormatted(id); err != nil || got != want {
		n.t.Errorf("IsVolumeFormatted(%s) = %v, %v, want %v", id, got, err, want)
	}
}

// wantMounted checks which volume a path leads to, if this version can tell.
func (n *volumeNode) wantMounted(path, want string) {
	n.t.Helper()
	if slices.Contains(n.Lacks, "GetVolumeIDFromTargetPath") {
		return
	}
	if got, err := n.mounted(path); err != nil || got != want {
		n.t.Errorf("at %s is %q, %v, want %q", path, got, err, want)
	}
}

func (n *volumeNode) wantContent(path, want string) {
	n.t.Helper()
	if got, err := n.ReadFile(path); err != nil || got != want {
		n.t.Errorf("content of %s = %q, %v, want %q", path, got, err, want)
	}
}

// wantCapacity checks the capacity of a volume, give or take what is lost to alignment.
func (n *volumeNode) wantCapacity(id string, want int64) {
	n.t.Helper()
	if slices.Contains(n.Lacks, "GetVolumeStats") {
		return
	}
	const tolerance = 2 << 20
	stats, err := n.stats(id)
	switch {
	case err != nil:
		n.t.Errorf("GetVolumeStats: %v", err)
	case stats.TotalBytes > want || stats.TotalBytes < want-tolerance:
		n.t.Errorf("the capacity is %d bytes, want about %d", stats.TotalBytes, want)
	case stats.UsedBytes <= 0 || stats.UsedBytes > stats.TotalBytes:
		n.t.Errorf("of %d bytes %d are used", stats.TotalBytes, stats.UsedBytes)
	}
}

// unchanged checks that something leaves the content of a volume as it is.
func (n *volumeNode) unchanged(id string, do func()) {
	n.t.Helper()
	content := func() string {
		if n.Content == nil {
			return ""
		}
		content, err := n.Content(id)
		if err != nil {
			n.t.Fatalf("content of volume %s: %v", id, err)
		}
		return content
	}
	before := content()
	do()
	if content() != before {
		n.t.Errorf("volume %s was written to", id)
	}
}
