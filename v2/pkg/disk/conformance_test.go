package disk_test

import (
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*winsim.Storage){
		"usual":         func(*winsim.Storage) {},
		"shared bus":    func(s *winsim.Storage) { s.SANPolicy, s.OfflineAgain = winsim.OfflineShared, 1 },
		"slow":          func(s *winsim.Storage) { s.VolumeArrival, s.CreateDiskMSR = 5*time.Second, winsim.MSRLate },
		"no mounting":   func(s *winsim.Storage) { s.Automount = winsim.AutomountNameless },
		"cached sizes":  func(s *winsim.Storage) { s.CapacityFollows = winsim.CapacityRescan },
		"foreign names": func(s *winsim.Storage) { s.ForeignVolumeIDs = true },
	} {
		t.Run(name, func(t *testing.T) {
			hosttest.Disk(t, func(t *testing.T) hosttest.DiskNode {
				t.Helper()
				return conformanceNode(t, change)
			})
		})
	}
}

// The disks of the node, after those of winsim.Default.
const (
	ntfsDisk = 10 + iota
	mbrDisk
	superfloppy
	damagedDisk
	linuxDisk
	dyingDisk
	fileDisk
)

func conformanceNode(t *testing.T, change func(*winsim.Storage)) hosttest.DiskNode {
	t.Helper()
	model := winsim.Default()
	change(&model.Storage)
	formatted := []winsim.Partition{{Volume: &winsim.Volume{Files: []winsim.File{{Path: `\precious`, Content: "data"}}}}}
	model.Disks = append(model.Disks,
		winsim.Disk{Number: ntfsDisk, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: formatted},
		winsim.Disk{Number: mbrDisk, Size: winsim.GiB, Layout: winsim.LayoutMBR, Partitions: formatted},
		winsim.Disk{Number: superfloppy, Size: winsim.GiB, Layout: winsim.LayoutSuperfloppy, Partitions: formatted},
		winsim.Disk{Number: damagedDisk, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: formatted, LooksRaw: 1 << 20},
		winsim.Disk{Number: linuxDisk, Size: winsim.GiB, Bytes: []winsim.Bytes{{Offset: 1080, Hex: "53ef"}}},
		winsim.Disk{Number: dyingDisk, Size: winsim.GiB, Dying: true},
		winsim.Disk{Number: fileDisk, Size: winsim.GiB, Bus: winsim.BusFileBacked, Location: `C:\vm\disk.vhdx`},
	)
	node, err := winsim.New(model)
	require.NoError(t, err)
	api, err := disk.New(diskapi.NewOn(node))
	require.NoError(t, err)
	system := uint32(0)
	return hosttest.DiskNode{
		API:       api,
		Empty:     1,
		EmptySize: int64(10 * winsim.GiB),
		Others:    []uint32{2, 3},
		Used:      map[string]uint32{"NTFS": ntfsDisk, "MBR": mbrDisk, "superfloppy": superfloppy},
		Suspect:   map[string]uint32{"damaged table": damagedDisk, "ext4": linuxDisk},
		System:    &system,
		Missing:   99,
		Content:   node.DiskFingerprint,
		Volumes: func(number uint32) ([]string, error) {
			info, err := node.DiskInfo(number)
			var ids []string
			for _, p := range info.Partitions {
				if v := p.Volume; v != nil && !v.Hidden {
					ids = append(ids, v.ID)
				}
			}
			return ids, err
		},
		Grow: func(number uint32, size int64) (uint32, error) {
			return number, node.GrowDisk(number, winsim.Size(size))
		},
		IDs: map[uint32]disk.DiskIDs{
			1: {Page83: "WINSIM  disk-1", SerialNumber: "WINSIM0001"},
			3: {Page83: "WINSIM  disk-3", SerialNumber: "WINSIM0003"},
		},
		Locations: map[uint32]disk.DiskLocation{
			1: {Adapter: "1", Bus: "0", Target: "0", LUNID: "0"},
			3: {Adapter: "1", Bus: "0", Target: "0", LUNID: "2"},
		},
		Unlocated: []uint32{fileDisk},
	}
}
