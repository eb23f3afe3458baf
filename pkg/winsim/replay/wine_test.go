package replay_test

import (
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// wineLacks are the calls that Wine does not answer as Windows does.
var wineLacks = []string{"Sessions", "SMBMappings", "DeviceNumber", "VolumeSpace", "NTFSVolumeData", "RootSecurity"}

// TestCompare_Wine: csi-proxy.exe was recorded under Wine, with hashes, while directories were made, listed
// and removed. About files, Wine and the emulator agree.
func TestCompare_Wine(t *testing.T) {
	report := must(replay.CompareFile(t.Context(), "testdata/wine.jsonl"))
	if report.Windows != "10.0.19043" || report.Calls < 50 || len(report.Skipped)+len(report.Notes) > 0 {
		t.Errorf("%d calls of Windows %s were compared, skipped %v, notes %q", report.Calls, report.Windows, report.Skipped, report.Notes)
	}
	for _, d := range report.Differences {
		if !slices.Contains(wineLacks, d.Method) {
			t.Error(d)
		}
	}
	if len(report.Differences) == 0 {
		t.Error("Wine has all of Windows")
	}
}
