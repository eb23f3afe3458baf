//go:build unix

package command_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/problem"
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
		if r := run(t.Context(), n.dir, "", "node", "heal", "--yes"); r.code != command.ExitProblems || !strings.Contains(r.out, want) || !n.emulated.Exists(path) {
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
		{"node heal --dry-run", "", command.ExitProblems, "removable  " + path, "", true},
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

// TestVolumeCheck: a damaged volume and a failing disk are problems, with commands for an operator.
func TestVolumeCheck(t *testing.T) {
	const guid, severe = "dead0000-0000-0000-0000-000000000000", "dead0000-0000-0000-0000-000000000002"
	const spotFix = `Get-Volume -UniqueId '\\?\Volume{` + guid + `}\' | Repair-Volume -SpotFix in PowerShell, or chkdsk "\\?\Volume{` + guid + `}" /f`
	model := winsim.Default()
	model.Disks[1].Health = winsim.DiskPredicts
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{
		ID: guid, Damage: winsim.Damage{Dirty: true, Corruption: winsim.Noted},
	}}}
	model.Disks[2].Layout, model.Disks[2].Partitions = winsim.LayoutGPT, []winsim.Partition{
		{Volume: &winsim.Volume{ID: severe, Damage: winsim.Damage{Corruption: winsim.Severe}}},
	}
	n := startNode(t, model)
	require.NoError(t, n.emulated.MountFolder(`C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi\`+strings.Repeat("0", 64)+`\globalmount`, guid))
	found := problemsOf(t, n)
	if p := found["damaged volume "+guid]; p.Run != "" || !strings.Contains(p.Advice, spotFix) || p.Severity != problem.WillHurt {
		t.Errorf("%+v", found)
	}
	if p := found["failing-disk disk 1"]; !strings.Contains(p.Text, "expects to fail") {
		t.Errorf("%+v", found)
	}
	for _, c := range []struct {
		args     string
		code     int
		out, err string
	}{
		{"volume check " + guid, command.ExitProblems, "spot fix needed", ""},
		{"volume check " + guid, command.ExitProblems, "expects to fail", ""},
		{"volume check " + guid, command.ExitProblems, spotFix, ""},
		{"volume check " + severe, command.ExitProblems, "Repair-Volume -OfflineScanAndFix", ""},
		{"volume check 00000000-0000-0000-0000-000000000000", command.ExitFailure, "", "gone"},
	} {
		r := run(t.Context(), n.dir, "", strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) {
			t.Errorf("%s: %+v", c.args, r)
		}
	}
}

// problemsOf returns the problems of a node by kind and object.
func problemsOf(t *testing.T, n *node) map[string]problem.Problem {
	t.Helper()
	var found struct{ Problems []problem.Problem }
	r := run(t.Context(), n.dir, "", "node", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 0 {
		t.Fatal(r, err)
	}
	all := map[string]problem.Problem{}
	for _, p := range found.Problems {
		all[string(p.Kind)+" "+p.Object.Name()] = p
	}
	return all
}

// TestRemedies: each command that a problem suggests needs no quotes in any shell, and ends the problem. Where there is no
// command, the text says what a person must do, and what the healer keeps has no command that keeps it, too.
func TestRemedies(t *testing.T) {
	const volume = `\\?\Volume{dead0000-0000-0000-0000-000000000000}\`
	staged := `C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi\` + strings.Repeat("0", 64) + `\globalmount`
	gone := winsim.Default()
	gone.Disks[1].Layout, gone.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{ID: volume}}}
	readOnly := winsim.Busy()
	readOnly.Disks[4].ReadOnly = true
	grown := winsim.Busy()
	grown.Disks[5].Partitions[1].Volume.Used = winsim.GiB
	plain, ran := regexp.MustCompile(`^csi-proxyctl [a-zA-Z0-9 ./:_~-]+$`), map[string]bool{}
	for name, c := range map[string]struct {
		model   winsim.Model
		arrange func(n *node)
	}{
		"broken":    {presetOf(t, "# preset broken, no disk hangs"), nil},
		"busy":      {winsim.Busy(), nil},
		"read-only": {readOnly, nil},
		"grown":     {grown, nil},
		"gone": {gone, func(n *node) {
			for _, err := range []error{n.emulated.Sleep(t.Context(), time.Hour), n.emulated.MountFolder(staged, volume), n.emulated.Sleep(t.Context(), time.Hour), n.emulated.DetachDisk(1)} {
				require.NoError(t, err)
			}
			for _, want := range []string{"; kept: gone for 0s of 10m; it may come back", "; kept: gone for 5m"} {
				run(t.Context(), n.dir, "", "node", "heal", "--dry-run")
				if p := problemsOf(t, n)["stale-mount "+staged]; !strings.Contains(p.Text, want) || p.Run != "" {
					t.Errorf("%+v, want %q and no command", p, want)
				}
				require.NoError(t, n.emulated.Sleep(t.Context(), 5*time.Minute))
			}
			run(t.Context(), n.dir, "", "node", "heal", "--dry-run")
		}},
		"unmapped": {winsim.Default(), func(n *node) {
			const link = `C:\var\lib\kubelet\plugins\link`
			run(t.Context(), n.dir, "csi-Pa55\n", "smb", "map", `\\files\data`, "--user", "csi", "--password-stdin", "--link", link)
			run(t.Context(), n.dir, "", "smb", "unmap", `\\files\data`)
			require.NoError(t, n.emulated.RemoveAll(link))
		}},
	} {
		n := startNode(t, c.model)
		if c.arrange != nil {
			c.arrange(n)
		}
		for key, p := range problemsOf(t, n) {
			if p.Run == "" {
				if p.Advice == "" {
					t.Errorf("%s: %+v has no remedy", name, p)
				}
				continue
			}
			if !plain.MatchString(p.Run) {
				t.Errorf("%s: a shell may change %q", name, p.Run)
			}
			words := strings.Fields(p.Run)[1:]
			ran[strings.Join(words[:2], " ")] = true
			if r := run(t.Context(), n.dir, "y\n", words...); r.code != 0 {
				t.Errorf("%s: %s: %+v", name, p.Run, r)
			}
			if left, still := problemsOf(t, n)[key]; still {
				t.Errorf("%s: %s leaves %+v", name, p.Run, left)
			}
		}
	}
	for _, command := range []string{"disk online", "disk writable", "fs rmdir", "node heal", "smb unmap", "volume resize"} {
		if !ran[command] {
			t.Errorf("nothing suggests %s", command)
		}
	}
}
