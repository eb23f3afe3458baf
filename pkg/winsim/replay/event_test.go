package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// TestCompare_Events: disks come, grow and go while calls are recorded.
func TestCompare_Events(t *testing.T) {
	model := winsim.Default()
	model.Storage = winsim.Storage{}
	node := must(winsim.New(model))
	text := recorded(t, node, record.Options{}, func(m win.Machine) {
		disks := must(disk.New(diskapi.NewOn(m)))
		look := func(number uint32) {
			t.Helper()
			_ = must(disks.ListDiskLocations(t.Context(), &disk.ListDiskLocationsRequest{}))
			_ = must(disks.ListDiskIDs(t.Context(), &disk.ListDiskIDsRequest{}))
			_ = must(disks.GetDiskStats(t.Context(), &disk.GetDiskStatsRequest{DiskNumber: number}))
		}
		look(1)
		added := must(node.AttachDisk(winsim.Disk{Number: 9, Size: 3 * winsim.GiB, Serial: "LATE", SCSI: &winsim.SCSI{Port: 1, LUN: 7}}))
		look(added)
		_ = must(disks.PartitionDisk(t.Context(), &disk.PartitionDiskRequest{DiskNumber: added}))
		if err := node.GrowDisk(added, 4*winsim.GiB); err != nil {
			t.Fatal(err)
		}
		_ = must(disks.Rescan(t.Context(), &disk.RescanRequest{}))
		look(added)
		if err := node.DetachDisk(added); err != nil {
			t.Fatal(err)
		}
		look(1)
	})
	for name, text := range map[string][]byte{"emulated": text, "machine": withoutSnapshot(t, text)} {
		report, err := replay.Compare(t.Context(), bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Differences {
			t.Errorf("%s: %s", name, d)
		}
		notes := strings.Join(report.Notes, "\n")
		for _, want := range []string{"disk 9, ", "was attached", "has grown to 4294967296 bytes", "was detached"} {
			if !strings.Contains(notes, want) || len(report.Notes) != 3 {
				t.Errorf("%s: no note about %s:\n%s", name, want, notes)
			}
		}
	}
}

// TestCompare_DiskWithData: a disk that comes while calls are recorded has volumes: it is a copy of another one,
// it was there before, or the machine has never had it.
func TestCompare_DiskWithData(t *testing.T) {
	withData := winsim.Disk{
		Number: 9, Size: 3 * winsim.GiB, Serial: "DATA", Layout: winsim.LayoutGPT, SCSI: &winsim.SCSI{Port: 1, LUN: 7}, Online: true,
		Partitions: []winsim.Partition{{Volume: &winsim.Volume{FileSystem: winsim.NTFS, Used: 100 * winsim.MiB}}},
	}
	for name, event := range map[string]func(*winsim.Node){
		"copy": func(n *winsim.Node) { _ = must(n.CloneDisk(1, winsim.Disk{Serial: "COPY"})) },
		"again": func(n *winsim.Node) {
			if err := n.DetachDisk(1); err != nil {
				t.Fatal(err)
			}
			_ = must(n.ReattachDisk(1))
		},
		"other": func(n *winsim.Node) { _ = must(n.AttachDisk(withData)) },
	} {
		t.Run(name, func(t *testing.T) {
			model := winsim.Default()
			model.Storage = winsim.Storage{}
			node := must(winsim.New(model))
			text := recorded(t, node, record.Options{}, func(m win.Machine) {
				inspector := must(wholenode.NewOn(m, wholenode.WorkingDirs(`C:\var\lib\kubelet`)))
				disks := must(disk.New(diskapi.NewOn(m)))
				_ = must(inspector.Describe(t.Context()))
				life(t.Context(), t, m)
				event(node)
				_ = must(disks.Rescan(t.Context(), &disk.RescanRequest{}))
				_ = must(inspector.Describe(t.Context()))
				for _, d := range node.Disks() {
					if _, err := disks.SetDiskState(t.Context(), &disk.SetDiskStateRequest{DiskNumber: d.Number, IsOnline: true}); d.Number > 0 && err != nil {
						t.Logf("disk %d: %v", d.Number, err)
					}
				}
				_ = must(inspector.Describe(t.Context()))
			})
			for _, text := range [][]byte{text, withoutSnapshot(t, text)} {
				report, err := replay.Compare(t.Context(), bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range report.Differences {
					t.Error(d)
				}
				if notes := strings.Join(report.Notes, "\n"); !strings.Contains(notes, "was attached") || strings.Contains(notes, "but not on the emulated node") {
					t.Errorf("notes %s", notes)
				}
			}
		})
	}
}

// TestCompare_UnknownDisk: nothing asked for the size of a disk that has come. A note says so, and calls about it
// are skipped.
func TestCompare_UnknownDisk(t *testing.T) {
	node := newNode(t, "default")
	text := recorded(t, node, record.Options{}, func(m win.Machine) {
		disks := must(disk.New(diskapi.NewOn(m)))
		_ = must(disks.ListDiskLocations(t.Context(), &disk.ListDiskLocationsRequest{}))
		_ = must(node.AttachDisk(winsim.Disk{Size: 5 * winsim.GiB}))
		_ = must(disks.Rescan(t.Context(), &disk.RescanRequest{}))
	})
	report, err := replay.Compare(t.Context(), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Differences {
		t.Error(d)
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "was attached; no call asked for its number, kind and size") || len(report.Skipped) == 0 {
		t.Errorf("notes %q, skipped %v", report.Notes, report.Skipped)
	}
}

// TestCompare_PlantedDisks: one answer about disks is replaced by another, which the calls after it contradict. It
// shows, and nothing else.
func TestCompare_PlantedDisks(t *testing.T) {
	text := string(recorded(t, newNode(t, "default"), record.Options{}, func(m win.Machine) {
		for range 3 {
			for _, d := range must(m.DiskDevices(t.Context())) {
				_ = must(m.DiskGeometry(t.Context(), d))
			}
		}
	}))
	device := must(newNode(t, "default").DiskDevices(t.Context()))[1]
	quoted := fmt.Sprintf("%q", device)
	for name, plant := range map[string]func(line string) string{
		"a larger disk":     func(line string) string { return strings.Replace(line, `"Size":`, `"Size":1`, 1) },
		"a missing disk":    func(line string) string { return strings.Replace(line, ","+quoted, "", 1) },
		"one disk too many": func(line string) string { return strings.Replace(line, quoted, quoted+`,"\\\\?\\planted"`, 1) },
		"disks that vanish": func(line string) string { return strings.Replace(line, `"out":[`, `"out":[],"x":[`, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			lines := strings.SplitAfter(text, "\n")
			for i, line := range lines {
				isList := strings.Contains(line, `"DiskDevices"`)
				if !isList && !strings.Contains(line, `"method":"DiskGeometry","in":{"d":`+quoted) || strings.HasPrefix(name, "a larger") == isList {
					continue
				}
				if !isList && i >= len(lines)-len(lines)/3 {
					break // nothing contradicts the last size
				}
				other := slices.Clone(lines)
				if strings.HasPrefix(name, "one") && i >= len(lines)-len(lines)/3 {
					break // nothing contradicts the last list either
				}
				if other[i] = plant(line); other[i] == line {
					t.Fatalf("nothing was planted in %s", line)
				}
				report := must(replay.Compare(t.Context(), strings.NewReader(strings.Join(other, ""))))
				calls := map[uint64]bool{}
				for _, d := range report.Differences {
					calls[d.Call] = true
				}
				if len(calls) != 1 || len(report.Skipped)+len(report.Notes) > 0 {
					t.Errorf("line %d: differences %v, notes %q, skipped %v", i, report.Differences, report.Notes, report.Skipped)
				}
			}
		})
	}
}
