package serve_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	volumev1 "github.com/kubernetes-csi/csi-proxy/client/groups/volume/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// errCrashed stands for the end of a node plugin: the driver took the first volume of an empty
// list.
var errCrashed = errors.New("index out of range [0] with length 0")

// driver makes the calls of a CSI driver in its order, as recorded from the released binaries.
type driver struct {
	t                        *testing.T
	disk, volume, filesystem remote
	number                   uint32
	path                     string // where it stages
	err                      error  // the first failure, which ends a NodeStage
}

func newDriver(t *testing.T, node *winsim.Node, number uint32) *driver {
	t.Helper()
	dir := run(t, node, "disk/v1", "volume/v1", "filesystem/v1")
	return &driver{
		t: t, number: number, path: mountPath,
		disk:       dialRemote(t, untyped(diskv1.NewClientWithPipePath), dir, "disk", "v1"),
		volume:     dialRemote(t, untyped(volumev1.NewClientWithPipePath), dir, "volume", "v1"),
		filesystem: dialRemote(t, untyped(filesystemv1.NewClientWithPipePath), dir, "filesystem", "v1"),
	}
}

// do makes a call, unless one has failed.
func (d *driver) do(r remote, method string, values fields) response {
	d.t.Helper()
	if d.err != nil {
		return response{}
	}
	out, err := r.call(d.t.Context(), method, values)
	if err != nil {
		d.err = fmt.Errorf("%s: %w", method, err)
	}
	return out
}

func (d *driver) onDisk() fields { return fields{"disk_number": d.number} }

func (d *driver) atStage() fields { return fields{"path": d.path, "target_path": d.path} }

func (d *driver) takeOnline() {
	d.t.Helper()
	d.do(d.disk, "SetDiskState", fields{"disk_number": d.number, "is_online": true})
}

// list returns the ids of the disk's volumes.
func (d *driver) list() (ids []string) {
	d.t.Helper()
	out := d.do(d.volume, "ListVolumesOnDisk", d.onDisk())
	if d.err != nil {
		return nil
	}
	list := out.get(d.t, "volume_ids").(protoreflect.List)
	for i := range list.Len() {
		ids = append(ids, list.Get(i).String())
	}
	return ids
}

// mountFirst mounts the first of the volumes.
func (d *driver) mountFirst(ids []string) {
	d.t.Helper()
	switch {
	case d.err != nil:
		return
	case len(ids) == 0:
		d.err = errCrashed
		return
	}
	if out := d.do(d.volume, "IsVolumeFormatted", fields{"volume_id": ids[0]}); d.err == nil && out.get(d.t, "formatted") != true {
		d.do(d.volume, "FormatVolume", fields{"volume_id": ids[0]})
	}
	d.do(d.volume, "MountVolume", fields{"volume_id": ids[0], "target_path": d.path})
}

// stages are the NodeStage calls of drivers.
var stages = map[string]func(*driver){
	"azuredisk 1.30.0": stageAzureDisk,
	"azuredisk 1.33.1": func(d *driver) {
		stageAzureDisk(d)
		d.do(d.volume, "ResizeVolume", fields{"volume_id": fmt.Sprint(d.number)})
	},
	"aws-ebs 1.63.0": func(d *driver) {
		d.do(d.disk, "ListDiskIDs", nil)
		d.do(d.filesystem, "PathExists", d.atStage())
		d.do(d.filesystem, "Mkdir", d.atStage())
		_, err := d.volume.call(d.t.Context(), "GetVolumeIDFromTargetPath", d.atStage())
		if d.err == nil && (err == nil || !strings.Contains(err.Error(), "because it does not exist")) {
			d.err = fmt.Errorf("the driver does not take this for a path that is not mounted: %w", err)
		}
		d.do(d.disk, "PartitionDisk", d.onDisk())
		d.takeOnline()
		d.mountFirst(d.list())
		d.do(d.disk, "Rescan", nil)
		d.do(d.disk, "GetDiskStats", d.onDisk())
		d.do(d.volume, "GetVolumeIDFromTargetPath", d.atStage())
	},
	// https://github.com/democratic-csi/democratic-csi/blob/master/src/driver/index.js
	"democratic-csi": func(d *driver) {
		d.list()
		ids := d.list()
		if d.err == nil && len(ids) == 0 {
			d.do(d.disk, "PartitionDisk", d.onDisk())
			ids = d.list()
		}
		if d.err == nil && len(ids) == 0 {
			d.err = errors.New("failed to create/discover volume for disk")
			return
		}
		d.mountFirst(ids)
	},
}

func stageAzureDisk(d *driver) {
	d.t.Helper()
	d.do(d.disk, "Rescan", nil)
	d.do(d.disk, "ListDiskLocations", nil)
	d.do(d.filesystem, "PathExists", d.atStage())
	d.do(d.disk, "PartitionDisk", d.onDisk())
	d.mountFirst(d.list())
}

// TestDrivers_LateVolume has disks with data on which Windows shows the volume late. Released
// drivers take the first volume of the list without a look at its length: an empty list after a
// successful PartitionDisk ends the node plugin, and with it the calls for all other volumes.
// A failed call is fine, because the kubelet repeats it.
func TestDrivers_LateVolume(t *testing.T) {
	const attempts = 4 // of the kubelet
	for name, stage := range stages {
		for _, offline := range []bool{true, false} {
			for _, arrival := range []time.Duration{0, 3 * time.Second, 15 * time.Second, 45 * time.Second} {
				t.Run(fmt.Sprintf("%s, offline %v, after %v", name, offline, arrival), func(t *testing.T) {
					model := winsim.Default()
					model.Storage.VolumeArrival = arrival
					node, err := winsim.New(model)
					must(t, err)
					number, err := node.AttachDisk(winsim.Disk{
						Size: winsim.GiB, Offline: offline, Layout: winsim.LayoutGPT,
						Partitions: []winsim.Partition{{Type: "msr"}, {Volume: &winsim.Volume{ID: dataVolume, Files: []winsim.File{{Path: `\precious`, Content: "data"}}}}},
					})
					must(t, err)
					before, err := node.DiskFingerprint(number)
					must(t, err)
					d := newDriver(t, node, number)
					for attempt := range attempts {
						d.err = nil
						stage(d)
						if errors.Is(d.err, errCrashed) {
							t.Fatal("the driver crashed")
						}
						if d.err == nil {
							break
						}
						t.Log(d.err)
						_ = node.Sleep(t.Context(), time.Second<<(3+attempt)) // the kubelet waits longer each time
					}
					if d.err != nil {
						t.Fatalf("after %d attempts: %v", attempts, d.err)
					}
					if content, err := node.ReadFile(mountPath + `\precious`); err != nil || content != "data" {
						t.Errorf("the mounted volume has %q, %v", content, err)
					}
					if after, err := node.DiskFingerprint(number); err != nil || after != before {
						t.Errorf("the disk was changed: %v", err)
					}
				})
			}
		}
	}
}
