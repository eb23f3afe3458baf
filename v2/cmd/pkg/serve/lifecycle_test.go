package serve_test

import (
	"errors"
	"fmt"
	"testing"

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
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/life"
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
				l := &liveVolume{t: t, clients: life.Clients{
					Disk:   diskv1.NewDiskClient(olderVersion{disks}),
					Volume: volumev1.NewVolumeClient(olderVersion{dialRemote(t, v.newClient, dir, "volume", v.name)}),
					Files:  files(t, dir),
				}}
				once := life.OnDisk(1)
				l.take(once.Begin)
				must(t, node.WriteFile(life.Published+`\file`, "data"))
				must(t, node.GrowDisk(1, 12*winsim.GiB))
				l.take(once.End)
				l.take(once.Begin) // on another day, and nothing is lost
				if content, err := node.ReadFile(life.Published + `\file`); err != nil || content != "data" {
					t.Errorf("content after the next mount: %q, %v", content, err)
				}
			})
		}
	}
}

// liveVolume is a volume that is taken through its life.
type liveVolume struct {
	t       *testing.T
	clients life.Clients
}

// take takes steps twice each, if the version has their calls.
func (l *liveVolume) take(steps []life.Step) {
	l.t.Helper()
	for _, step := range steps {
		for range 2 {
			if _, err := step.Do(l.t.Context(), l.clients); err != nil && !errors.Is(err, errNoMethod) {
				l.t.Fatalf("%s: %v", step.Name, err)
			}
		}
	}
}

func files(t *testing.T, dir string) filesystemv1.FilesystemClient {
	t.Helper()
	return filesystemv1.NewFilesystemClient(dial(t, dir, grpcapi.Endpoint{Group: "filesystem", Version: "v1"}))
}

// onV1 has clients of disk, volume and filesystem in version v1.
func onV1(t *testing.T, dir string) *liveVolume {
	t.Helper()
	return &liveVolume{t: t, clients: life.Clients{
		Disk:   diskv1.NewDiskClient(dial(t, dir, grpcapi.Endpoint{Group: "disk", Version: "v1"})),
		Volume: volumev1.NewVolumeClient(dial(t, dir, grpcapi.Endpoint{Group: "volume", Version: "v1"})),
		Files:  files(t, dir),
	}}
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
			l := onV1(t, dir)
			l.take(life.OnDisk(1).Begin)
			must(t, node.WriteFile(life.Published+`\file`, "data"))
			info, err := node.DiskInfo(1)
			must(t, err)
			_, err = l.clients.Volume.FormatVolume(t.Context(), &volumev1.FormatVolumeRequest{VolumeId: info.Partitions[len(info.Partitions)-1].Volume.ID})
			must(t, err)
			if kept := node.Exists(life.Staged + `\file`); kept == over {
				t.Errorf("with FormatOver %v the content is kept: %v", over, kept)
			}
		})
	}
}
