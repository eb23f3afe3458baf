package replay_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
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
