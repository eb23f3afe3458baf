package problem_test

import (
	"testing"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

func TestRepairAdvice(t *testing.T) {
	const (
		id      = `\\?\Volume{11111111-1111-1111-1111-111111111111}\`
		chkdsk  = ` in PowerShell, or chkdsk "\\?\Volume{11111111-1111-1111-1111-111111111111}" `
		repair  = "run Get-Volume -UniqueId '" + id + "' | Repair-Volume "
		scan    = repair + "-Scan" + chkdsk + "/scan"
		spotFix = repair + "-SpotFix" + chkdsk + "/f"
		both    = "while pods use it, " + scan + "; without pods, " + spotFix
	)
	for _, c := range []struct {
		dirty      bool
		damage, fs string
		want       string
	}{
		{false, "", "NTFS", ""},
		{false, "unknown", "NTFS", ""},
		{true, "", "NTFS", both},
		{true, "unknown", "ntfs", both},
		{false, "scan needed", "NTFS", both},
		{true, "spot fix needed", "NTFS", "stop the pods that use it; then " + spotFix},
		{false, "offline repair needed", "NTFS", "back it up, and stop the pods that use it; then " + repair + "-OfflineScanAndFix" + chkdsk + "/f"},
		{true, "", "ReFS", "only NTFS can be repaired: back it up, and restore it to a new volume if files cannot be read; ReFS mends itself"},
	} {
		if got := problem.RepairAdvice(&extensionv1.Volume{Id: id, FileSystem: c.fs, Dirty: &c.dirty, Damage: c.damage}); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	system := uint32(0)
	found := problem.Find(&extensionv1.Node{
		Disks:   []*extensionv1.Disk{{Number: &system, System: true}},
		Volumes: []*extensionv1.Volume{{Id: id, FileSystem: "NTFS", State: extensionv1.VolumeFormatted, Dirty: new(true), Disks: []uint32{0}}},
	})
	if len(found) != 1 || found[0].Advice != "it is on the system disk, which Windows checks at the next start; until then "+scan {
		t.Errorf("the system disk: %+v", found)
	}
}
