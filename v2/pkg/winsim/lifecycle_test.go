package winsim_test

import (
	"fmt"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
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
				disks, diskErr := disk.New(node.Disk())
				volumes, volumeErr := volume.New(node.Volume())
				mustAll(t, diskErr, volumeErr)
				id := hosttest.VolumeLife(t, hosttest.VolumeNode{
					API: volumes, Disks: disks, Root: `C:\var\lib\kubelet\plugins`, Empty: [2]uint32{1}, EmptySize: int64(d.disk.Size),
					WriteFile: node.WriteFile, ReadFile: node.ReadFile,
					Grow: func(number uint32, size int64) (uint32, error) {
						return number, node.GrowDisk(number, winsim.Size(size))
					},
				})
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
				if content, err := node.ReadFile(id + `file`); content != "volume data" {
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
