//go:build drivers

package ported

import (
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestDrivers builds and runs one port after the other, logs what its test says, and checks it as the driver would have it.
func TestDrivers(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, err)
	for _, p := range ports() {
		t.Run(p.name, func(t *testing.T) {
			tree, err := p.prepare(t.Context(), root)
			require.NoError(t, err)
			output, err := tree.test(t.Context())
			require.NoError(t, err)
			t.Logf("%s %s:\n%s", p.name, p.module.Version, output)
			require.NoError(t, tree.buildForWindows(t.Context()))
			require.NoError(t, tree.checkWhole(t.Context(), root))
		})
	}
}
