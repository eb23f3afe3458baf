package volume_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*winsim.Model){
		"usual":      func(*winsim.Model) {},
		"shared bus": func(m *winsim.Model) { m.Storage.SANPolicy, m.Storage.OfflineAgain = winsim.OfflineShared, 1 },
		"slow": func(m *winsim.Model) {
			m.Storage.VolumeArrival, m.Storage.ServiceDelay, m.Storage.FormatTime = 5*time.Second, time.Hour, 30*time.Second
			m.Storage.CapacityDelay, m.Storage.GrowDelay = 3*time.Second, 3*time.Second
		},
		"troubled arrival": func(m *winsim.Model) { m.Storage.ArrivalTrouble = 80 * time.Millisecond },
		"raw entries":      func(m *winsim.Model) { m.Storage.RawEntries = true },
		"MSR at once":      func(m *winsim.Model) { m.Storage.CreateDiskMSR = winsim.MSRAtOnce },
		"MSR late": func(m *winsim.Model) {
			m.Storage.CreateDiskMSR, m.Storage.VolumeArrival = winsim.MSRLate, 300*time.Millisecond
		},
		"old cache":   func(m *winsim.Model) { m.Storage.ServiceOutOfDate = 3 },
		"no mounting": func(m *winsim.Model) { m.Storage.Automount = winsim.AutomountOffline },
		"no names": func(m *winsim.Model) {
			m.Storage.Automount, m.Storage.VolumeArrival = winsim.AutomountNameless, 100*time.Millisecond
		},
		"lost notices":  func(m *winsim.Model) { m.Storage.LoseMountNotices = true },
		"table lags":    func(m *winsim.Model) { m.Storage.TableLags = true },
		"cached sizes":  func(m *winsim.Model) { m.Storage.CapacityFollows = winsim.CapacityRescan },
		"foreign names": func(m *winsim.Model) { m.Storage.ForeignVolumeIDs = true },
		"large sectors": func(m *winsim.Model) { m.Disks[1].SectorSize, m.Disks[2].SectorSize = 4096, 4096 },
	} {
		t.Run(name, func(t *testing.T) {
			hosttest.Volume(t, func(t *testing.T) hosttest.VolumeNode {
				t.Helper()
				return conformanceNode(t, change)
			})
		})
	}
}

// suspects are volumes that must not be taken for empty.
var suspects = map[string]winsim.Partition{
	"locked":       {Volume: &winsim.Volume{State: winsim.Locked}},
	"damaged":      {Volume: &winsim.Volume{State: winsim.Raw}},
	"not ready":    {Volume: &winsim.Volume{State: winsim.NotReady}},
	"ext4":         {Bytes: []winsim.Bytes{{Offset: 1080, Hex: "53ef"}}},
	"LUKS":         {Bytes: []winsim.Bytes{{Hex: "4c554b53babe"}}},
	"boot sector":  {Bytes: []winsim.Bytes{{Offset: 510, Hex: "55aa"}}},
	"dying (1117)": {Volume: &winsim.Volume{FileSystem: winsim.FileSystemNone}},
}

func conformanceNode(t *testing.T, change func(*winsim.Model)) hosttest.VolumeNode {
	t.Helper()
	model := winsim.Default()
	model.Disks[1].Size, model.Disks[2].Size = winsim.GiB, winsim.GiB
	ids, number := map[string]string{}, uint32(10)
	for name, partition := range suspects {
		ids[name] = fmt.Sprintf(`\\?\Volume{%08x-1111-4222-8333-444444444444}\`, number)
		v := winsim.Volume{FileSystem: winsim.FileSystemNone}
		if partition.Volume != nil {
			v = *partition.Volume
		}
		v.ID, partition.Volume = ids[name], &v
		model.Disks = append(model.Disks, winsim.Disk{
			Number: number, Size: winsim.GiB, Bus: winsim.BusNVMe, Layout: winsim.LayoutGPT,
			Partitions: []winsim.Partition{partition}, Dying: name == "dying (1117)",
		})
		number++
	}
	change(&model)
	node, err := winsim.New(model)
	require.NoError(t, err)
	disks, err := disk.New(node.Disk())
	require.NoError(t, err)
	volumes, err := volume.New(node.Volume())
	require.NoError(t, err)
	return hosttest.VolumeNode{
		API:         volumes,
		Disks:       disks,
		Root:        `C:\var\lib\kubelet\plugins`,
		Empty:       [2]uint32{1, 2},
		EmptySize:   int64(winsim.GiB),
		Suspect:     ids,
		System:      winsim.SystemVolume,
		MissingDisk: 99,
		Missing:     `\\?\Volume{99999999-9999-9999-9999-999999999999}\`,
		WriteFile:   node.WriteFile,
		ReadFile:    node.ReadFile,
		Symlink:     node.Symlink,
		Grow: func(number uint32, size int64) (uint32, error) {
			return number, node.GrowDisk(number, winsim.Size(size))
		},
		Detach: node.DetachDisk,
		Fail:   node.FailDisk,
		Hang:   node.HangDisk,
		Silence: func(id string) error {
			_, err := node.Inject(winsim.Fault{Call: "DeviceNumber", Object: id, Error: uint32(winerr.DeviceNotConnected)})
			return err
		},
		Damage: func(id string) error {
			return node.DamageVolume(id, winsim.Damage{Dirty: true, Corruption: winsim.Noted})
		},
		Content: func(id string) (string, error) {
			for number := range uint32(20) {
				info, err := node.DiskInfo(number)
				if err != nil {
					continue
				}
				for _, p := range info.Partitions {
					if p.Volume != nil && p.Volume.ID == id {
						return node.DiskFingerprint(number)
					}
				}
			}
			return "", fmt.Errorf("no disk has volume %s", id)
		},
	}
}
