package winsim_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestDocs: what a reader copies from docs/winsim.md is a model, or a list of faults.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/winsim.md")
	must(err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) != 2 {
		t.Errorf("the page has %d blocks of YAML, want 2", len(blocks))
	}
	for _, block := range blocks {
		text := string(block[1])
		if strings.HasPrefix(text, "faults:") {
			_, err = winsim.LoadFaults(strings.NewReader(text), "faults.yaml")
		} else if model, loadErr := winsim.LoadModel(strings.NewReader(text), "model.yaml"); loadErr != nil {
			err = loadErr
		} else {
			_, err = winsim.New(model)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
