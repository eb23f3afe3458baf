package ported

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestPorts compares the ports with the files in testdata.
func TestPorts(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	if len(entries) != len(ports()) {
		t.Errorf("%d directories for %d ports", len(entries), len(ports()))
	}
	for _, p := range ports() {
		files, err := p.files(root)
		require.NoError(t, err)
		tests := 0
		for _, name := range files {
			if isTest(name) {
				tests++
			}
			// Their names must not exclude them from a system.
			if strings.HasSuffix(name, "_windows.go") || strings.HasSuffix(name, "_linux.go") {
				t.Errorf("%s: %s is for one system only", p.name, name)
			}
		}
		if tests == 0 || tests == len(files) {
			t.Errorf("%s has the files %v", p.name, files)
		}
	}
}
