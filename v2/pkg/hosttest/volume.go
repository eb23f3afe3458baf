package hosttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// VolumeNode is a node under test. Leave fields empty that the node does not have; the suite
// skips the cases that need them.
type VolumeNode struct {
	// API is the implementation under test. Its errors must match those of io/fs.
	API volume.Interface
	// Disks partitions and rescans disks.
	Disks disk.Interface

	// Root is an existing directory on NTFS in which the suite may create files.
	Root string
	// Empty are two blank disks of EmptySize bytes each, a multiple of 1 GiB.
	Empty     [2]uint32
	EmptySize int64
	// Suspect are volumes that are not empty although Windows sees no file system, or cannot
	// read it, by the reason. The API must never treat them as empty.
	Suspect map[string]string
	// System is the system volume of Windows.
	System string
	// MissingDisk is an unused disk number, Missing an unknown volume ID.
	MissingDisk uint32
	Missing     string

	// WriteFile and ReadFile access the node's files without the API, and Symlink creates a
	// directory link as package filesystem does.
	WriteFile func(path, content string) error
	ReadFile  func(path string) (string, error)
	Symlink   func(path, target string) error
	// Grow enlarges a disk, as its backend does, and returns the number that it has then.
	Grow func(disk uint32, size int64) (uint32, error)
	// Detach removes a disk, as its backend does.
	Detach func(disk uint32) error
	// Fail and Hang make a disk that cannot be read, with an error or without an end. Silence makes a volume not answer.
	Fail, Hang func(disk uint32) error
	Silence    func(volumeID string) error
	// Damage makes a volume dirty, with damage that its file system has noted. The API needs Health of a volume.Volume
	// for the cases about it.
	Damage func(volumeID string) error
	// Content returns a fingerprint of a volume's content.
	Content func(volumeID string) (string, error)

	// Lacks names methods that this version of the API does not have, "partitions" if it cannot
	// list the volumes of one partition, and "mounted folders" if the node has none.
	Lacks []string
}

// ErrNoSpace matches errors of API about a disk that is too small. The standard library has no
// such error.
var ErrNoSpace error = winerr.NoSpace

// Volume runs the cases of the volume group. newNode is called once per case.
func Volume(t *testing.T, newNode func(t *testing.T) VolumeNode) {
	t.Helper()
	runCases(t, volumeCases, func(t *testing.T) (*volumeNode, []string) {
		t.Helper()
		n := &volumeNode{VolumeNode: newNode(t), runner: runner{t}}
		return n, n.Lacks
	})
}

// volumeNode adds short names for the calls.
type volumeNode struct {
	VolumeNode
	runner
}

func (n *volumeNode) path(names ...string) string {
	return strings.TrimSuffix(n.Root, `\`) + `\` + strings.Join(names, `\`)
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
	return errOf(n.API.FormatVolume(n.ctx(), &volume.FormatVolumeRequest{VolumeID: id}))
}

func (n *volumeNode) mount(id, path string) error {
	return errOf(n.API.MountVolume(n.ctx(), &volume.MountVolumeRequest{VolumeID: id, TargetPath: path}))
}

func (n *volumeNode) unmount(id, path string) error {
	return errOf(n.API.UnmountVolume(n.ctx(), &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path}))
}

func (n *volumeNode) resize(id string, size int64) error {
	return errOf(n.API.ResizeVolume(n.ctx(), &volume.ResizeVolumeRequest{VolumeID: id, SizeBytes: size}))
}

func (n *volumeNode) flush(id string) error {
	return errOf(n.API.WriteVolumeCache(n.ctx(), &volume.WriteVolumeCacheRequest{VolumeID: id}))
}

// health asks what a volume.Volume has besides volume.Interface.
func (n *volumeNode) health(id string) (volumeapi.Health, error) {
	n.t.Helper()
	reader, ok := n.API.(volume.Extended)
	n.need("health", ok)
	return reader.Health(n.ctx(), id)
}

func (n *volumeNode) wantProblems(id string, want bool) {
	n.t.Helper()
	got, err := n.health(id)
	if err != nil || len(got.Problems()) > 0 != want || got.Well() && want {
		n.t.Errorf("Health: %q, %+v, %v, want problems: %v", got.Problems(), got, err, want)
	}
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

// newVolume creates a volume on an empty disk and returns its ID.
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

// newFormatted creates a formatted volume on an empty disk and returns its ID.
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

// wantMounted checks the volume of a path, if this version of the API supports it.
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

// wantCapacity checks the capacity of a volume, with a tolerance for alignment.
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

// unchanged checks that do does not change the content of a volume.
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
