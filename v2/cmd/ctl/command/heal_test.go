//go:build unix

package command_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestHeal: a find is shown, kept until its volume has been gone for a while, removed only after a
// yes, and then gone.
func TestHeal(t *testing.T) {
	const volume = `\\?\Volume{dead0000-0000-0000-0000-000000000000}\`
	path := `C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi\` + strings.Repeat("0", 64) + `\globalmount`
	model := winsim.Default()
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: volume}}}
	n := startNode(t, model)
	for _, err := range []error{n.emulated.Sleep(t.Context(), time.Hour), n.emulated.MountFolder(path, volume), n.emulated.Sleep(t.Context(), time.Hour), n.emulated.DetachDisk(1)} {
		require.NoError(t, err)
	}
	for _, want := range []string{"gone for 0s of 10m", "gone for 5m"} {
		if r := run(t.Context(), n.dir, "", "node", "heal", "--yes"); r.code != command.ExitFindings || !strings.Contains(r.out, want) || !n.emulated.Exists(path) {
			t.Errorf("%+v, want %q", r, want)
		}
		require.NoError(t, n.emulated.Sleep(t.Context(), 5*time.Minute))
	}
	for _, c := range []struct {
		args, in string
		code     int
		out, err string
		left     bool
	}{
		{"node heal --dry-run", "", command.ExitFindings, "removable  " + path, "", true},
		{"node heal", "n\n", command.ExitFailure, "", "Remove 1 links? [y/N] csi-proxyctl: node not changed: not confirmed", true},
		{"node heal", "y\n", command.ExitOK, "removed  " + path, "Remove 1 links?", false},
		{"node heal --yes", "", command.ExitOK, "0 stale, 0 live.", "", false},
	} {
		r := run(t.Context(), n.dir, c.in, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) || n.emulated.Exists(path) != c.left {
			t.Errorf("%s: %+v; the link is left: %v", c.args, r, n.emulated.Exists(path))
		}
	}
	var list []map[string]string
	if r := run(t.Context(), n.dir, "", "node", "heal", "--dry-run", "-o", "json"); json.Unmarshal([]byte(r.out), &list) != nil || len(list) != 0 {
		t.Errorf("%+v", r)
	}
}
