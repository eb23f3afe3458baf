//go:build drivers

package ported

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/report"
)

// TestDrivers builds and runs one port after the other, and writes what came of it. Drivers that -run
// leaves out keep their rows.
func TestDrivers(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	earlier, err := report.Rows(root, "ported")
	require.NoError(t, err)
	table := report.Table{Header: []string{"Driver", "Lines deleted", "Lines added", "Builds for Windows", "Library mode", "Daemon mode"}}
	for _, p := range ports() {
		name := p.name + " " + p.module.Version
		ran := false
		t.Run(p.name, func(t *testing.T) {
			ran = true
			tree, err := p.prepare(t.Context(), root)
			require.NoError(t, err)
			deleted, added, err := tree.lines(root)
			require.NoError(t, err)
			row := []string{name, fmt.Sprint(deleted), fmt.Sprint(added), "yes"}
			output, err := tree.test(t.Context())
			require.NoError(t, err)
			for _, mode := range []string{"library", "daemon"} {
				row = append(row, fmt.Sprintf("%d calls pass", callsIn(t, output, mode)))
			}
			require.NoError(t, tree.buildForWindows(t.Context()))
			table.Add(row...)
		})
		if !ran {
			table.Keep(earlier, name)
		}
	}
	t.Logf("\n%s", &table)
	if t.Failed() {
		return
	}
	require.NoError(t, report.Write(root, "ported", table.String()))
}

// callsIn returns how many calls there were, as package life says.
func callsIn(t *testing.T, output []byte, mode string) int {
	t.Helper()
	sum := 0
	for _, found := range regexp.MustCompile(` mode `+mode+`: ([0-9]+) calls`).FindAllSubmatch(output, -1) {
		calls, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		sum += calls
	}
	if sum == 0 {
		t.Fatalf("the test says nothing about the mode %s:\n%s", mode, output)
	}
	return sum
}
