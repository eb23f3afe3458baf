//go:build !windows

package windows_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

func runService(*testing.M, []string) bool { return false }

func openBrief() (err error) {
	this, err = emulated()
	return err
}

// TestWithoutFlags: the summary is short, and each line says what it decides.
func TestWithoutFlags(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	output, err := exec.CommandContext(t.Context(), program).CombinedOutput()
	_, summary, found := strings.Cut(string(output), "\nSummary of ")
	lines := strings.Split(strings.TrimSpace(summary), "\n")
	if err != nil || !found || len(lines) < 10 || len(lines) > 20 || !strings.Contains(summary, `removable: ["size 21, table 21"]`) {
		t.Fatalf("%v:\n%s", err, output)
	}
	for _, line := range lines[1:] {
		if !strings.HasPrefix(line, "Q-") || !strings.Contains(line, " -> ") || strings.Contains(line, "FAILS") {
			t.Error(line)
		}
	}
}

func (*node) openHere() (func() error, error) {
	return nil, errors.New("this is not Windows; leave -dir out to ask the emulated node")
}
