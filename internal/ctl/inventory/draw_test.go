package inventory_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

// TestDraw_Serials: an iSCSI target chooses its serial number, and not what the screen shows.
func TestDraw_Serials(t *testing.T) {
	node := inventory.Node{Disks: []inventory.Disk{{SerialNumber: "\x1b[2J\n└─ disk 9 is well"}}}
	drawn := node.Draw(&output.Printer{}, 0)
	if lines := strings.Count(drawn, "\n"); lines != 2 || strings.Contains(drawn, "\x1b") {
		t.Errorf("%d lines:\n%q", lines, drawn)
	}
}
