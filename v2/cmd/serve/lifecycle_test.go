package serve_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	diskv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1alpha1"
	diskv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta1"
	diskv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta2"
	diskv1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1beta3"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	volumev1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1alpha1"
	volumev1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta1"
	volumev1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta2"
	volumev1beta3 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1beta3"
	volumev2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v2alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
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
	{"v1", untyped(diskv1.NewClientWithPipePath)},
}

var volumeVersions = []clientVersion{
	{"v1alpha1", untyped(volumev1alpha1.NewClientWithPipePath)},
	{"v1beta1", untyped(volumev1beta1.NewClientWithPipePath)},
	{"v1beta2", untyped(volumev1beta2.NewClientWithPipePath)},
	{"v1beta3", untyped(volumev1beta3.NewClientWithPipePath)},
	{"v1", untyped(volumev1.NewClientWithPipePath)},
	{"v2alpha1", untyped(volumev2alpha1.NewClientWithPipePath)},
}

// TestLifecycle takes a blank disk through the life of a volume, through every pair of a
// disk and a volume version, each with its own client. Steps that a version does not have
// are left out; every change is made twice, because callers retry.
func TestLifecycle(t *testing.T) {
	for _, d := range diskVersions {
		for _, v := range volumeVersions {
			t.Run(fmt.Sprintf("disk %s, volume %s", d.name, v.name), func(t *testing.T) {
				node := newNode(t)
				dir := run(t, node, "disk/"+d.name, "volume/"+v.name)
				life := life{
					t: t, node: node, number: 1,
					disk:   dialRemote(t, d.newClient, dir, "disk", d.name),
					volume: dialRemote(t, v.newClient, dir, "volume", v.name),
				}
				life.identify()
				life.partition()
				life.format()
				life.mount()
				life.grow()
				life.unmount()
			})
		}
	}
}

// life is a volume's.
type life struct {
	t            *testing.T
	node         *winsim.Node
	disk, volume remote
	number       uint32
	id           string
}

const mountPath = `C:\var\lib\kubelet\plugins\globalmount`

// on makes a call that must succeed, if the version has it.
func (l *life) on(r remote, method string, values fields) (response, bool) {
	l.t.Helper()
	if !r.has(method) {
		return response{}, false
	}
	out, err := r.call(l.t.Context(), method, values)
	if err != nil {
		l.t.Fatalf("%s: %v", method, err)
	}
	return out, true
}

func (l *life) twice(r remote, method string, values fields) {
	l.t.Helper()
	l.on(r, method, values)
	l.on(r, method, values)
}

// want compares a field of an answer, if the version has the call.
func (l *life) want(r remote, method string, values fields, field string, want any) {
	l.t.Helper()
	if out, ok := l.on(r, method, values); ok {
		if got := out.get(l.t, field); got != want {
			l.t.Errorf("%s: %s is %v, want %v", method, field, got, want)
		}
	}
}

func (l *life) onDisk() fields { return fields{"disk_number": l.number} }

func (l *life) onVolume() fields { return fields{"volume_id": l.id} }

func (l *life) onMount() fields { return fields{"volume_id": l.id, "target_path": mountPath} }

func (l *life) identify() {
	l.t.Helper()
	l.twice(l.disk, "Rescan", nil)
	for method, field := range map[string]string{"ListDiskLocations": "disk_locations", "ListDiskIDs": "diskIDs"} {
		if out, ok := l.on(l.disk, method, nil); ok {
			if disks := out.get(l.t, field).(protoreflect.Map); disks.Len() != 4 {
				l.t.Errorf("%s lists %d disks, want 4", method, disks.Len())
			}
		}
	}
	if out, ok := l.on(l.disk, "GetDiskNumberByName", fields{"disk_name": "disk-1"}); ok {
		if got := out.get(l.t, "disk_number"); got != "1" {
			l.t.Errorf("GetDiskNumberByName gives %v, want 1", got)
		}
	}
	l.want(l.disk, "GetDiskStats", l.onDisk(), "total_bytes", int64(10*winsim.GiB))
}

func (l *life) partition() {
	l.t.Helper()
	l.twice(l.disk, "PartitionDisk", l.onDisk())
	l.twice(l.disk, "SetDiskState", fields{"disk_number": l.number, "is_online": true})
	l.want(l.disk, "GetDiskState", l.onDisk(), "is_online", true)
	out, _ := l.on(l.volume, "ListVolumesOnDisk", l.onDisk())
	ids := out.get(l.t, "volume_ids").(protoreflect.List)
	if ids.Len() != 1 {
		l.t.Fatalf("the disk has %d volumes, want 1", ids.Len())
	}
	l.id = ids.Get(0).String()
	l.want(l.volume, "GetDiskNumberFromVolumeID", l.onVolume(), "disk_number", int64(l.number))
}

func (l *life) format() {
	l.t.Helper()
	l.want(l.volume, "IsVolumeFormatted", l.onVolume(), "formatted", false)
	l.twice(l.volume, "FormatVolume", l.onVolume())
	l.want(l.volume, "IsVolumeFormatted", l.onVolume(), "formatted", true)
}

func (l *life) mount() {
	l.t.Helper()
	l.twice(l.volume, "MountVolume", l.onMount())
	if err := l.node.WriteFile(mountPath+`\file`, "data"); err != nil {
		l.t.Fatal(err)
	}
	for _, method := range []string{"GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath"} {
		l.want(l.volume, method, l.onMount(), "volume_id", l.id)
	}
	l.twice(l.volume, "WriteVolumeCache", l.onVolume())
}

func (l *life) grow() {
	l.t.Helper()
	before, hasStats := l.on(l.volume, "GetVolumeStats", l.onVolume())
	if err := l.node.GrowDisk(l.number, 12*winsim.GiB); err != nil {
		l.t.Fatal(err)
	}
	l.twice(l.disk, "Rescan", nil)
	l.want(l.disk, "GetDiskStats", l.onDisk(), "total_bytes", int64(12*winsim.GiB))
	l.twice(l.volume, "ResizeVolume", fields{"volume_id": l.id, "size_bytes": int64(0)})
	if !hasStats {
		return
	}
	after, _ := l.on(l.volume, "GetVolumeStats", l.onVolume())
	grown := after.get(l.t, "total_bytes").(int64) - before.get(l.t, "total_bytes").(int64)
	if grown < int64(2*winsim.GiB)-(1<<20) || grown > int64(2*winsim.GiB) {
		l.t.Errorf("the volume has grown by %d bytes, want about 2 GiB", grown)
	}
	if used := after.get(l.t, "used_bytes").(int64); used <= 0 || used > int64(winsim.GiB) {
		l.t.Errorf("%d bytes are used", used)
	}
}

func (l *life) unmount() {
	l.t.Helper()
	l.twice(l.volume, "UnmountVolume", l.onMount())
	if l.node.Exists(mountPath + `\file`) {
		l.t.Error("the volume is still mounted")
	}
	l.twice(l.disk, "SetDiskState", fields{"disk_number": l.number, "is_online": false})
	l.want(l.disk, "GetDiskState", l.onDisk(), "is_online", false)
	// On another day the disk is partitioned again, and nothing is lost.
	l.twice(l.disk, "PartitionDisk", l.onDisk())
	l.want(l.volume, "IsVolumeFormatted", l.onVolume(), "formatted", true)
	l.twice(l.volume, "FormatVolume", l.onVolume())
	l.twice(l.volume, "MountVolume", l.onMount())
	if content, err := l.node.ReadFile(mountPath + `\file`); err != nil || content != "data" {
		l.t.Errorf("content after the next mount: %q, %v", content, err)
	}
}

// TestOldDiskNumbers: text that is not a disk number must not become one.
func TestOldDiskNumbers(t *testing.T) {
	node := newNode(t)
	dir := run(t, node, "disk/v1beta2")
	before, err := node.DiskFingerprint(1)
	must(t, err)
	disk := dialRemote(t, untyped(diskv1beta2.NewClientWithPipePath), dir, "disk", "v1beta2")
	for _, text := range []string{"", "-1", "1x", " 1", "4294967296", "4294967297", "0x1", "1.0", "٣"} {
		if _, err := disk.call(t.Context(), "PartitionDisk", fields{"disk_number": text}); err == nil {
			t.Errorf("PartitionDisk took %q for a disk", text)
		}
	}
	if after, err := node.DiskFingerprint(1); err != nil || after != before {
		t.Errorf("disk 1 was changed: %v", err)
	}
}

// TestFormatOver: formatting never destroys a file system, unless that was switched on.
func TestFormatOver(t *testing.T) {
	for _, over := range []bool{false, true} {
		t.Run(fmt.Sprint(over), func(t *testing.T) {
			node := newNode(t)
			dir := runWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk/v1", "volume/v1"}}, FormatOver: over})
			life := life{
				t: t, node: node, number: 1,
				disk:   dialRemote(t, untyped(diskv1.NewClientWithPipePath), dir, "disk", "v1"),
				volume: dialRemote(t, untyped(volumev1.NewClientWithPipePath), dir, "volume", "v1"),
			}
			life.partition()
			life.format()
			life.mount()
			life.on(life.volume, "FormatVolume", life.onVolume())
			if kept := node.Exists(mountPath + `\file`); kept == over {
				t.Errorf("with FormatOver %v the content is kept: %v", over, kept)
			}
		})
	}
}
