package serve_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/reflect/protoreflect"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	disksv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta3"
	volumesv1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

type clientVersion struct {
	name      string
	newClient func(pipePath string) (any, error)
}

var diskVersions = []clientVersion{
	{"v1alpha1", untyped(diskv1alpha1.NewClientWithPipePath)},
	{"v1beta1", untyped(diskv1beta1.NewClientWithPipePath)},
	{"v1beta2", untyped(diskv1beta2.NewClientWithPipePath)},
	{"v1beta3", untyped(diskv1beta3.NewClientWithPipePath)},
	{"v1", untyped(disksv1.NewClientWithPipePath)},
}

var volumeVersions = []clientVersion{
	{"v1alpha1", untyped(volumev1alpha1.NewClientWithPipePath)},
	{"v1beta1", untyped(volumev1beta1.NewClientWithPipePath)},
	{"v1beta2", untyped(volumev1beta2.NewClientWithPipePath)},
	{"v1beta3", untyped(volumev1beta3.NewClientWithPipePath)},
	{"v1", untyped(volumesv1.NewClientWithPipePath)},
	{"v2alpha1", untyped(volumev2alpha1.NewClientWithPipePath)},
}

// mountPath is where drivers stage.
const mountPath = `C:\var\lib\kubelet\plugins\globalmount`

// TestLifecycle takes a blank disk through the life of a volume, through every pair of a
// disk and a volume version, each with its own client. Steps that a version does not have
// are left out; every step is taken twice, because callers retry.
func TestLifecycle(t *testing.T) {
	for _, d := range diskVersions {
		for _, v := range volumeVersions {
			t.Run(fmt.Sprintf("disk %s, volume %s", d.name, v.name), func(t *testing.T) {
				node := newNode(t)
				dir := run(t, node, "disk/"+d.name, "volume/"+v.name, "filesystem/v1")
				disks := dialRemote(t, d.newClient, dir, "disk", d.name)
				wantDisks(t, disks, 4)
				l := &liveVolume{
					t: t, disk: diskv1.NewDiskClient(olderVersion{disks}), files: files(t, dir),
					volume: volumev1.NewVolumeClient(olderVersion{dialRemote(t, v.newClient, dir, "volume", v.name)}),
				}
				l.begin()
				must(t, node.WriteFile(published+`\file`, "data"))
				must(t, node.GrowDisk(1, 12*winsim.GiB))
				l.end()
				l.begin() // on another day, and nothing is lost
				if content, err := node.ReadFile(published + `\file`); err != nil || content != "data" {
					t.Errorf("content after the next mount: %q, %v", content, err)
				}
			})
		}
	}
}

// liveVolume is the volume of disk 1, which is taken through its life.
type liveVolume struct {
	t      *testing.T
	disk   diskv1.DiskClient
	volume volumev1.VolumeClient
	files  filesystemv1.FilesystemClient
	id     string
}

// Where it is staged and published.
const (
	staged    = `C:\var\lib\kubelet\plugins\life`
	published = `C:\var\lib\kubelet\pods\life`
)

// twice makes a call twice, if the version has it. It fails unless the answer is good.
func twice[Request, Response any](
	l *liveVolume, call func(context.Context, *Request, ...grpc.CallOption) (*Response, error), request *Request, good func(*Response) bool,
) {
	l.t.Helper()
	for range 2 {
		switch out, err := call(l.t.Context(), request); {
		case errors.Is(err, errNoMethod):
		case err != nil:
			l.t.Fatal(err)
		case good != nil && !good(out):
			l.t.Fatalf("%T: got %v", request, out)
		}
	}
}

// begin is until a pod can use it.
func (l *liveVolume) begin() {
	l.t.Helper()
	l.setOnline(true)
	twice(l, l.disk.PartitionDisk, &diskv1.PartitionDiskRequest{DiskNumber: 1}, nil)
	twice(l, l.volume.ListVolumesOnDisk, &volumev1.ListVolumesOnDiskRequest{DiskNumber: 1}, func(out *volumev1.ListVolumesOnDiskResponse) bool {
		l.id = strings.Join(out.VolumeIds, " ")
		return len(out.VolumeIds) == 1
	})
	l.format()
	twice(l, l.volume.MountVolume, &volumev1.MountVolumeRequest{VolumeId: l.id, TargetPath: staged}, nil)
	twice(l, l.volume.GetVolumeIDFromTargetPath, &volumev1.GetVolumeIDFromTargetPathRequest{TargetPath: staged},
		func(out *volumev1.GetVolumeIDFromTargetPathResponse) bool { return out.VolumeId == l.id })
	twice(l, l.files.CreateSymlink, &filesystemv1.CreateSymlinkRequest{SourcePath: staged, TargetPath: published}, nil)
	twice(l, l.files.IsSymlink, &filesystemv1.IsSymlinkRequest{Path: published}, (*filesystemv1.IsSymlinkResponse).GetIsSymlink)
}

// end is after the pod.
func (l *liveVolume) end() {
	l.t.Helper()
	twice(l, l.volume.WriteVolumeCache, &volumev1.WriteVolumeCacheRequest{VolumeId: l.id}, nil)
	twice(l, l.disk.Rescan, &diskv1.RescanRequest{}, nil)
	twice(l, l.volume.ResizeVolume, &volumev1.ResizeVolumeRequest{VolumeId: l.id}, nil)
	const size, reserved = int64(12 * winsim.GiB), 64 << 20 // which tables and reserved partitions may take
	twice(l, l.volume.GetVolumeStats, &volumev1.GetVolumeStatsRequest{VolumeId: l.id}, func(out *volumev1.GetVolumeStatsResponse) bool {
		return out.TotalBytes > size-reserved && out.TotalBytes <= size && out.UsedBytes > 0 && out.UsedBytes <= out.TotalBytes
	})
	twice(l, l.disk.GetDiskStats, &diskv1.GetDiskStatsRequest{DiskNumber: 1}, func(out *diskv1.GetDiskStatsResponse) bool { return out.TotalBytes == size })
	l.format() // keeps it
	for _, path := range []string{published, staged} {
		if path == staged {
			twice(l, l.volume.UnmountVolume, &volumev1.UnmountVolumeRequest{VolumeId: l.id, TargetPath: staged}, nil)
		}
		twice(l, l.files.Rmdir, &filesystemv1.RmdirRequest{Path: path, Force: true}, nil)
		twice(l, l.files.PathExists, &filesystemv1.PathExistsRequest{Path: path}, func(out *filesystemv1.PathExistsResponse) bool { return !out.Exists })
	}
	l.setOnline(false)
}

func (l *liveVolume) setOnline(online bool) {
	l.t.Helper()
	twice(l, l.disk.SetDiskState, &diskv1.SetDiskStateRequest{DiskNumber: 1, IsOnline: online}, nil)
	twice(l, l.disk.GetDiskState, &diskv1.GetDiskStateRequest{DiskNumber: 1}, func(out *diskv1.GetDiskStateResponse) bool { return out.IsOnline == online })
}

func (l *liveVolume) format() {
	l.t.Helper()
	twice(l, l.volume.FormatVolume, &volumev1.FormatVolumeRequest{VolumeId: l.id}, nil)
	twice(l, l.volume.IsVolumeFormatted, &volumev1.IsVolumeFormattedRequest{VolumeId: l.id}, (*volumev1.IsVolumeFormattedResponse).GetFormatted)
}

func files(t *testing.T, dir string) filesystemv1.FilesystemClient {
	t.Helper()
	return filesystemv1.NewFilesystemClient(dial(t, dir, grpcapi.Endpoint{Group: "filesystem", Version: "v1"}))
}

// wantDisks checks what a version lists.
func wantDisks(t *testing.T, disks remote, want int) {
	t.Helper()
	for method, field := range map[string]string{"ListDiskLocations": "disk_locations", "ListDiskIDs": "diskIDs"} {
		if !disks.has(method) {
			continue
		}
		out, err := disks.call(t.Context(), method, nil)
		must(t, err)
		if got := out.get(t, field).(protoreflect.Map).Len(); got != want {
			t.Errorf("%s lists %d disks, want %d", method, got, want)
		}
	}
	if disks.has("GetDiskNumberByName") {
		out, err := disks.call(t.Context(), "GetDiskNumberByName", fields{"disk_name": "disk-1"})
		must(t, err)
		if got := out.get(t, "disk_number"); got != "1" {
			t.Errorf("GetDiskNumberByName gives %v, want 1", got)
		}
	}
}

// TestFormatOver: formatting never destroys a file system, unless that was switched on.
func TestFormatOver(t *testing.T) {
	for _, over := range []bool{false, true} {
		t.Run(fmt.Sprint(over), func(t *testing.T) {
			node := newNode(t)
			dir := runWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk/v1", "volume/v1", "filesystem/v1"}}, FormatOver: over})
			l := &liveVolume{
				t: t, disk: diskv1.NewDiskClient(dial(t, dir, grpcapi.Endpoint{Group: "disk", Version: "v1"})), files: files(t, dir),
				volume: volumev1.NewVolumeClient(dial(t, dir, grpcapi.Endpoint{Group: "volume", Version: "v1"})),
			}
			l.begin()
			must(t, node.WriteFile(published+`\file`, "data"))
			l.format()
			if kept := node.Exists(staged + `\file`); kept == over {
				t.Errorf("with FormatOver %v the content is kept: %v", over, kept)
			}
		})
	}
}
