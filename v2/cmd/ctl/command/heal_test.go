//go:build unix

package command_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/storage/warning"
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

// TestVolumeRepair: a damaged volume and a failing disk are warnings with a command, and that command mends.
func TestVolumeRepair(t *testing.T) {
	const guid, refs, severe = "dead0000-0000-0000-0000-000000000000", "dead0000-0000-0000-0000-000000000001", "dead0000-0000-0000-0000-000000000002"
	path := `C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi\` + strings.Repeat("0", 64) + `\globalmount`
	model := winsim.Default()
	model.Disks[1].Health = winsim.DiskPredicts
	model.Disks[1].Layout, model.Disks[1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{
		ID: guid, Damage: winsim.Damage{Dirty: true, Corruption: winsim.Noted},
	}}}
	model.Disks[2].Layout, model.Disks[2].Partitions = winsim.LayoutGPT, []winsim.Partition{
		{Size: winsim.GiB / 4, Volume: &winsim.Volume{ID: refs, FileSystem: winsim.ReFS}},
		{Volume: &winsim.Volume{ID: severe, Damage: winsim.Damage{Corruption: winsim.Severe}}},
	}
	n := startNode(t, model)
	require.NoError(t, n.emulated.MountFolder(path, guid))
	found := problemsOf(t, n)
	if w := found["damaged volume "+guid]; w.Run != "csi-proxyctl volume repair "+guid || w.Severity != warning.WillHurt {
		t.Errorf("%+v", found)
	}
	if w := found["failing-disk disk 1"]; !strings.Contains(w.Text, "expects to fail") {
		t.Errorf("%+v", found)
	}
	for _, c := range []struct {
		args, in string
		code     int
		out, err string
	}{
		{"volume check " + guid, "", command.ExitFindings, "spot fix needed", ""},
		{"volume repair " + guid + " --dry-run", "", command.ExitOK, "would fail: it is in use at " + path, ""},
		{"volume repair " + guid + " --dry-run --dismount", "", command.ExitOK, "mend what is damaged in seconds", ""},
		{"volume repair " + warning.ShortID(winsim.SystemVolume) + " --dry-run --dismount", "", command.ExitOK, "would fail: it is on the system disk", ""},
		{"volume repair " + refs + " --dry-run", "", command.ExitOK, "would fail: it has ReFS", ""},
		{"volume repair " + severe + " --dry-run", "", command.ExitOK, "would fail: a spot fix cannot mend it; use --offline", ""},
		{"volume repair " + severe + " --dry-run --offline", "", command.ExitOK, "would take it away", ""},
		{"volume repair " + guid, "n\n", command.ExitFailure, "", "not confirmed"},
		{"volume repair " + guid + " --yes", "", command.ExitFailure, "", "in use at " + path},
		{"volume repair " + guid + " --yes --dismount", "", command.ExitFindings, "expects to fail", ""},
		{"volume check " + guid + " --scan", "", command.ExitFindings, "expects to fail", ""},
		{"volume check 00000000-0000-0000-0000-000000000000", "", command.ExitFailure, "", "gone"},
	} {
		r := run(t.Context(), n.dir, c.in, strings.Fields(c.args)...)
		if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) {
			t.Errorf("%s: %+v", c.args, r)
		}
	}
	if found := problemsOf(t, n); len(found) != 2 { // the disk, and what needs an offline repair
		t.Errorf("after the repair: %+v", found)
	}
}

// problemsOf returns the problems of a node by kind and object.
func problemsOf(t *testing.T, n *node) map[string]warning.Warning {
	t.Helper()
	var found struct{ Problems []warning.Warning }
	r := run(t.Context(), n.dir, "", "node", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &found); err != nil || r.code != 0 {
		t.Fatal(r, err)
	}
	all := map[string]warning.Warning{}
	for _, w := range found.Problems {
		all[string(w.Kind)+" "+w.Object.Name()] = w
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
	torn := winsim.Default()
	for i, damage := range []winsim.Damage{{Dirty: true, Corruption: winsim.Unnoticed}, {Corruption: winsim.Severe}} {
		torn.Disks[i+1].Layout, torn.Disks[i+1].Partitions = winsim.LayoutGPT, []winsim.Partition{{Volume: &winsim.Volume{Damage: damage}}}
	}
	readOnly := winsim.Busy()
	readOnly.Disks[4].ReadOnly = true
	grown := winsim.Busy()
	grown.Disks[5].Partitions[1].Volume.Used = winsim.GiB
	damaged := winsim.Default()
	for i, damage := range []winsim.Damage{{Dirty: true}, {Corruption: winsim.Suspected}, {Corruption: winsim.Noted}, {Corruption: winsim.Severe}} {
		id := fmt.Sprintf("0d0d0d0d-0000-0000-0000-%012d", i)
		damaged.Disks = append(damaged.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: id, Damage: damage}}}})
	}
	plain, ran := regexp.MustCompile(`^csi-proxyctl [a-zA-Z0-9 ./:_~-]+$`), map[string]bool{}
	for name, c := range map[string]struct {
		model   winsim.Model
		arrange func(n *node)
	}{
		"damaged":   {damaged, nil},
		"broken":    {presetOf(t, "# preset broken, no disk hangs"), nil},
		"busy":      {winsim.Busy(), nil},
		"torn":      {torn, nil},
		"read-only": {readOnly, nil},
		"grown":     {grown, nil},
		"gone": {gone, func(n *node) {
			for _, err := range []error{n.emulated.Sleep(t.Context(), time.Hour), n.emulated.MountFolder(staged, volume), n.emulated.Sleep(t.Context(), time.Hour), n.emulated.DetachDisk(1)} {
				require.NoError(t, err)
			}
			for _, want := range []string{"; kept: gone for 0s of 10m; it may come back", "; kept: gone for 5m"} {
				run(t.Context(), n.dir, "", "node", "heal", "--dry-run")
				if w := problemsOf(t, n)["stale-mount "+staged]; !strings.Contains(w.Text, want) || w.Run != "" {
					t.Errorf("%+v, want %q and no command", w, want)
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
		for key, w := range problemsOf(t, n) {
			if w.Run == "" {
				if w.Advice == "" {
					t.Errorf("%s: %+v has no remedy", name, w)
				}
				continue
			}
			if !plain.MatchString(w.Run) {
				t.Errorf("%s: a shell may change %q", name, w.Run)
			}
			words := strings.Fields(w.Run)[1:]
			ran[strings.Join(words[:2], " ")] = true
			if r := run(t.Context(), n.dir, "y\n", words...); r.code != 0 {
				t.Errorf("%s: %s: %+v", name, w.Run, r)
			}
			if left, still := problemsOf(t, n)[key]; still {
				t.Errorf("%s: %s leaves %+v", name, w.Run, left)
			}
		}
	}
	for _, command := range []string{"disk online", "disk writable", "fs rmdir", "node heal", "smb unmap", "volume repair", "volume resize"} {
		if !ran[command] {
			t.Errorf("nothing suggests %s", command)
		}
	}
}
