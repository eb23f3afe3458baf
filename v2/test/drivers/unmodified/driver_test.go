package unmodified

import (
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestModels: the emulator accepts the nodes of all drivers, and their disks can be distinguished.
func TestModels(t *testing.T) {
	for _, d := range drivers() {
		contents := []content{blank, linuxPartition, linuxDisk, moved}
		if d.disk == nil {
			contents = nil
		}
		for _, pace := range []delays{idle, late} {
			text := d.model(pace, contents...)
			model, err := winsim.LoadModel(strings.NewReader(text), d.name)
			if err != nil {
				t.Errorf("%v\n%s", err, text)
				continue
			}
			node, err := winsim.New(model)
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
				continue
			}
			var fingerprints []string
			for number := range uint32(len(contents)) {
				fingerprint, err := node.DiskFingerprint(number + 1)
				if err != nil || slices.Contains(fingerprints, fingerprint) {
					t.Errorf("%s: disk %d has the content of another: %v", d.name, number+1, err)
				}
				fingerprints = append(fingerprints, fingerprint)
			}
		}
	}
}
