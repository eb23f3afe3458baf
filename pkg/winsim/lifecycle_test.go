package winsim_test

import (
	"fmt"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestLifecycle takes blank disks through the life of a volume, with the code of Windows nodes,
// on machines with all quirks. Sizes match those of Windows' own tools.
func TestLifecycle(t *testing.T) {
	type sizes struct{ msr, msrLength, data, dataLength winsim.Size }
	for _, d := range []struct {
		disk winsim.Disk
		want sizes
	}{
		{winsim.Disk{Size: winsim.GiB}, sizes{17408, 16759808, 16777216, 1055916032}},
		{winsim.Disk{Size: 10 * winsim.GiB}, sizes{17408, 16759808, 16777216, 10719592448}},
		{winsim.Disk{Size: winsim.GiB, SectorSize: 4096}, sizes{24576, 16752640, 16777216, 1055916032}},
	} {
		for name, quirks := range quirks {
			t.Run(fmt.Sprintf("%s of %d, %s", d.disk.Size, d.disk.SectorSize, name), func(t *testing.T) {
				model := winsim.Default()
				model.Disks = append(model.Disks[:1], d.disk)
				model.Storage = quirks
				node := newNode(t, model)
				id := lifecycle(t, node)
				info, err := node.DiskInfo(1)
				mustAll(t, err)
				got := sizes{}
				for _, p := range info.Partitions {
					switch p.Type {
					case "msr":
						got.msr, got.msrLength = p.Offset, p.Size
					case "basic":
						got.data, got.dataLength = p.Offset, p.Size
					}
				}
				want := d.want
				want.dataLength += winsim.GiB // by which the disk grew
				if got != want {
					t.Errorf("partitions %+v, want %+v", got, want)
				}
				if content, err := node.ReadFile(id + `precious`); content != "data" {
					t.Errorf("the volume's file contains %q, %v", content, err)
				}
			})
		}
	}
}

// quirks are models with unusual behaviour.
var quirks = map[string]winsim.Storage{
	"no quirks": {},
	"usual":     winsim.Default().Storage,
	"slow": {
		VolumeArrival: 3e9, ArrivalTrouble: 2e8, ServiceDelay: 5e9, FormatTime: 10e9,
		CapacityDelay: 1e9, GrowDelay: 1e9,
	},
	"SAN":              {SANPolicy: winsim.OfflineShared, OfflineAgain: 2, VolumeArrival: 1e8},
	"raw entries":      {RawEntries: true},
	"MSR at once":      {CreateDiskMSR: winsim.MSRAtOnce},
	"MSR late":         {CreateDiskMSR: winsim.MSRLate, VolumeArrival: 3e8},
	"automount off":    {Automount: winsim.AutomountOffline, VolumeArrival: 1e8},
	"no names":         {Automount: winsim.AutomountNameless, VolumeArrival: 1e8},
	"foreign names":    {ForeignVolumeIDs: true, VolumeArrival: 1e8},
	"table lags":       {TableLags: true},
	"lost notices":     {LoseMountNotices: true},
	"rescan":           {CapacityFollows: winsim.CapacityRescan},
	"capacity at once": {CapacityFollows: winsim.CapacityAtOnce, CapacityDelay: 1e8},
	"stale service":    {ServiceOutOfDate: 1, ServiceDelay: 1e12},
}

// lifecycle partitions, formats, mounts, fills and grows disk 1, and unmounts it again. It
// returns the volume.
func lifecycle(t *testing.T, node *winsim.Node) (id string) {
	t.Helper()
	disks, err := disk.New(node.Disk())
	mustAll(t, err)
	volumes, err := volume.New(node.Volume())
	mustAll(t, err)
	const path = `C:\var\lib\kubelet\plugins\stage`
	ctx := t.Context()
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	_, err = disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1})
	must("partition", err)
	_, err = disks.SetDiskState(ctx, &disk.SetDiskStateRequest{DiskNumber: 1, IsOnline: true})
	must("online", err)
	list, err := volumes.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: 1})
	must("list", err)
	if len(list.VolumeIDs) != 1 {
		t.Fatalf("volumes %q, want one", list.VolumeIDs)
	}
	id = list.VolumeIDs[0]
	formatted, err := volumes.IsVolumeFormatted(ctx, &volume.IsVolumeFormattedRequest{VolumeID: id})
	must("formatted?", err)
	if formatted.Formatted {
		t.Fatal("a new volume is formatted")
	}
	_, err = volumes.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeID: id})
	must("format", err)
	must("make the folder", node.Mkdir(path))
	_, err = volumes.MountVolume(ctx, &volume.MountVolumeRequest{VolumeID: id, TargetPath: path})
	must("mount", err)
	must("write", node.WriteFile(path+`\precious`, "data"))

	info, err := node.DiskInfo(1)
	must("describe", err)
	must("grow", node.GrowDisk(1, info.Size+winsim.GiB))
	_, err = disks.Rescan(ctx, &disk.RescanRequest{})
	must("rescan", err)
	_, err = volumes.ResizeVolume(ctx, &volume.ResizeVolumeRequest{VolumeID: id})
	must("resize", err)
	stats, err := volumes.GetVolumeStats(ctx, &volume.GetVolumeStatsRequest{VolumeID: id})
	must("stats", err)
	if free := int64(info.Size+winsim.GiB) - stats.TotalBytes; free < 0 || free > 20<<20 {
		t.Errorf("the volume has %d bytes of %d", stats.TotalBytes, info.Size+winsim.GiB)
	}
	_, err = volumes.UnmountVolume(ctx, &volume.UnmountVolumeRequest{VolumeID: id, TargetPath: path})
	must("unmount", err)
	return id
}
