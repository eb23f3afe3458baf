package inventory_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/inventory"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
)

// TestDraw_Paths: scripts get a path unchanged, people see it escaped.
func TestDraw_Paths(t *testing.T) {
	const path = "C:\\var\\a\u202eb"
	node := inventory.Node{
		Node: &extensionv1.Node{
			Volumes: []*extensionv1.Volume{{Id: "v", MountPaths: []string{path}}},
			Links:   []*extensionv1.Link{{Path: path + "c", VolumeId: "v"}},
		},
		Unfolded: true,
		Problems: []inventory.Problem{{Object: problem.Object{Type: problem.Mount, ID: path}}},
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
	node := inventory.Node{Unfolded: true, Node: &extensionv1.Node{Disks: []*extensionv1.Disk{{SerialNumber: "\x1b[2J\n└─ disk 9 is well"}}}}
	drawn := node.Draw(&output.Printer{}, 0)
	if lines := strings.Count(drawn, "\n"); lines != 3 || strings.Contains(drawn, "\x1b") {
		t.Errorf("%d lines:\n%q", lines, drawn)
	}
}

// TestDraw_Narrow: at 80 columns, a pod and a persistent volume with names of ordinary length are whole, and two disks that
// say nothing of themselves differ.
func TestDraw_Narrow(t *testing.T) {
	const uid, pv = "6f9619ff-8b86-d011-b42d-00c04fc964ff", "pvc-7d9f3b52-1c55-4e0a-9c1e-5b1a2c3d4e5f"
	device := func(n int) string {
		return fmt.Sprintf(`\\?\scsi#disk&ven_nvme&prod_msft_nvme_accele_and_more#6&ca10229&0&%06x#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`, n)
	}
	node := inventory.Node{Node: &extensionv1.Node{Links: []*extensionv1.Link{}}}
	for i := range 2 {
		node.Problems = append(node.Problems, inventory.Problem{
			Severity: problem.Hurts, Object: problem.Object{Type: problem.Disk, ID: device(i)}, Text: "it does not answer: no answer in time",
			Affects: []string{`C:\var\lib\kubelet\pods\` + uid + `\volumes\kubernetes.io~csi\` + pv + `\mount`},
		})
	}
	drawn := node.Draw(&output.Printer{}, 80)
	for _, want := range []string{"pod " + uid + "\n", "pv " + pv + "\n", "0&000000)", "0&000001)"} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %q in\n%s", want, drawn)
		}
	}
	for line := range strings.Lines(drawn) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
	}
}
