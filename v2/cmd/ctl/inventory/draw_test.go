package inventory_test

import (
	"encoding/json"
	"strings"
	"testing"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
)

// TestDraw_Paths: scripts get a path unchanged, people see it escaped.
func TestDraw_Paths(t *testing.T) {
	const path = "C:\\var\\a\u202eb"
	node := inventory.Node{
		Node: &extensionv1.Node{
			Volumes: []*extensionv1.Volume{{Id: "v", MountPaths: []string{path}}},
			Links:   []*extensionv1.Link{{Path: path + "c", VolumeId: "v"}},
		},
		Problems: []inventory.Warning{{Object: warning.Object{Type: warning.Mount, ID: path}}},
	}
	drawn := node.Draw(&output.Printer{}, 0)
	if n := strings.Count(drawn, "<U+202E>"); n != 3 || strings.Contains(drawn, "\u202e") {
		t.Errorf("%d of 3 are spelled out:\n%q", n, drawn)
	}
	encoded, err := json.Marshal(node)
	if err != nil || strings.Count(string(encoded), "a\u202eb") != 3 {
		t.Errorf("%s, %v", encoded, err)
	}
}

// TestDraw_Serials: the serial number of an iSCSI target cannot control the terminal.
func TestDraw_Serials(t *testing.T) {
	node := inventory.Node{Node: &extensionv1.Node{Disks: []*extensionv1.Disk{{SerialNumber: "\x1b[2J\n└─ disk 9 is well"}}}}
	drawn := node.Draw(&output.Printer{}, 0)
	if lines := strings.Count(drawn, "\n"); lines != 2 || strings.Contains(drawn, "\x1b") {
		t.Errorf("%d lines:\n%q", lines, drawn)
	}
}
