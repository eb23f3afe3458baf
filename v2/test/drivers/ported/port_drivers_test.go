//go:build drivers

package ported

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	released = flag.String("mounter", "", "the released `version` of the mounter, for TestAdopt")
	built    = flag.String("build", "", "the `port` whose program TestAdopt builds, or all")
)

// budget is how many requirements of a driver's go.mod the mounter may add or change: the mounter, the library, the client and
// go-ole. Those of others are not raised.
const (
	budget = 4
	// testBudget is the same if its tests are in the same module: the programs that mountertest starts need new versions of gRPC
	// and mount-utils.
	testBudget = 45
)

// TestAdopt builds ports for Windows with the mounter of a release, which the go command has to find. make test-adopt runs it,
// and builds one of them.
func TestAdopt(t *testing.T) {
	if *released == "" {
		t.Skip("no version of the mounter; make test-adopt gives one")
	}
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, err)
	for _, p := range []port{share(), elasticBlockStore()} {
		t.Run(p.name, func(t *testing.T) {
			tree, err := p.prepare(t.Context(), root, *released)
			require.NoError(t, err)
			raised, err := tree.raised()
			require.NoError(t, err)
			t.Logf("go get mounter@%s gives the go.mod of %s:\n%s", *released, p.module, strings.Join(raised, "\n"))
			if len(raised) > budget {
				t.Errorf("it adds or changes %d requirements, and may %d", len(raised), budget)
			}
			if *built == "" || *built == p.name { // a driver takes minutes
				require.NoError(t, tree.buildForWindows(t.Context()))
			}
			require.NoError(t, tree.get(t.Context(), "mounter/mountertest@"+*released))
			raised, err = tree.raised()
			require.NoError(t, err)
			if t.Logf("mountertest gives %d:\n%s", len(raised), strings.Join(raised, "\n")); len(raised) > testBudget {
				t.Errorf("mountertest adds or changes %d requirements, and may %d", len(raised), testBudget)
			}
		})
	}
}

// TestDrivers builds and runs one port after the other, logs what its test says, and checks it as the driver would have it.
func TestDrivers(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", "..", ".."))
	require.NoError(t, err)
	for _, p := range ports() {
		t.Run(p.name, func(t *testing.T) {
			tree, err := p.prepare(t.Context(), root, "")
			require.NoError(t, err)
			output, err := tree.test(t.Context())
			require.NoError(t, err)
			deleted, added := countLines(t, tree, root)
			t.Logf("%s %s, %d lines deleted, %d added:\n%s", p.name, p.module.Version, deleted, added, output)
			require.NoError(t, tree.buildForWindows(t.Context()))
			require.NoError(t, tree.checkWhole(t.Context(), root))
		})
	}
}
