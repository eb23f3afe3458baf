//go:build unix

package command_test

import (
	"context"
	"fmt"
	"html"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestVolumeList_Locked: standard error says why a volume has no size.
func TestVolumeList_Locked(t *testing.T) {
	model := winsim.Default()
	model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
		{Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000001", State: winsim.Locked}},
	}})
	n := startNode(t, model)
	r := run(t.Context(), n.dir, "", "volume", "list", "--disk", "4")
	if !strings.Contains(r.out, "4     1     00000000-0000-0000-0000-000000000001  locked  -     -    -   -   -\n") {
		t.Error(r.out)
	}
	if want := "csi-proxyctl: volume 00000000-0000-0000-0000-000000000001: locked by BitLocker: unlock it to read it\n"; r.err != want {
		t.Errorf("got %q, want %q", r.err, want)
	}
}

// hungModel is a node with volumes that pods use, on disks 4 to 3+n, all of which hang.
func hungModel(n int) winsim.Model {
	model := winsim.Default()
	for i := range n {
		id := fmt.Sprintf("0a0a0a0a-0000-0000-0000-%012d", i)
		stage := fmt.Sprintf(`C:\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi.example.com\%064x\globalmount`, i)
		model.Disks = append(model.Disks, winsim.Disk{
			Size: winsim.GiB, Serial: fmt.Sprintf("HUNG%d", i), Hanging: true,
			Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: id}}},
		})
		model.Files = append(model.Files, winsim.File{Path: stage, Volume: id}, winsim.File{Path: podPath(i), Symlink: stage})
	}
	return model
}

func podUID(i int) string { return fmt.Sprintf("00000000-0000-4000-a000-%012d", i) }

func podPath(i int) string {
	return fmt.Sprintf(`C:\var\lib\kubelet\pods\%s\volumes\kubernetes.io~csi\pvc-%d\mount`, podUID(i), i)
}

// viewLimit is how long a person waits for a view, whatever hangs: 6 s, and a margin for machines that do other work. A
// question without a limit takes two minutes.
const viewLimit = 30 * time.Second

// TestViews_Hung: whatever hangs, and however much of it, all views answer in time, name what is silent and the pods that
// it hurts, and suggest to remove nothing. A disk that has not answered once is not said to hang.
func TestViews_Hung(t *testing.T) {
	t.Parallel() // it waits
	silent := []winsim.Fault{{Object: `\\?\Volume{0a0a*`, Delay: time.Hour}}
	for number := range 10 {
		silent = append(silent, winsim.Fault{Object: fmt.Sprintf(`\\.\PhysicalDrive%d`, 4+number), Delay: time.Hour})
	}
	blank := winsim.Default()
	blank.Disks = append(blank.Disks, winsim.Disk{Size: winsim.GiB, Hanging: true})
	for name, c := range map[string]struct {
		model  winsim.Model
		faults []winsim.Fault
		silent []string // objects that every view names
		pods   int
	}{
		"10 disks": {hungModel(10), nil, []string{"disk 4", "disk 13"}, 10},
		"10 disks that do not even say their numbers": {hungModel(10), silent, []string{"disk ? (", "volume 0a0a0a0a-0000-0000-0000-000000000009"}, 10},
		"1 blank disk":   {blank, nil, []string{"disk 4"}, 0},
		"all of Windows": {winsim.Default(), []winsim.Fault{{Delay: time.Hour}}, []string{"disks", "volumes"}, 0},
		"mount manager":  {hungModel(3), []winsim.Fault{{Call: "VolumeIDs", Delay: time.Hour}, {Call: "VolumePaths", Delay: time.Hour}}, []string{"disk 4", "disk 6", "volumes"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, c.model)
			for _, fault := range c.faults {
				n.inject(t, fault)
			}
			var all sync.WaitGroup
			for _, view := range []string{
				"node", "node --problems", "node -o json", "node -o html", "watch --count 1", "doctor", "disk list", "volume list", "smb list --ask",
			} {
				all.Go(func() {
					began := time.Now()
					r := run(context.WithoutCancel(t.Context()), n.dir, "", strings.Fields(view)...)
					took := time.Since(began)
					if took > viewLimit {
						t.Errorf("%s took %s", view, took)
					}
					if strings.Contains(r.out, "rmdir") || strings.Contains(r.out, "unmap") {
						t.Errorf("%s suggests to remove something:\n%s", view, r.out)
					}
					if strings.Contains(r.out, "no volume, serial") || strings.HasPrefix(r.err, "csi-proxyctl: no volumes") || strings.HasPrefix(r.err, "csi-proxyctl: no disks") || strings.Contains(r.out, "it is older") {
						t.Errorf("%s takes what does not answer for nothing:\n%.2000s%s", view, r.out, r.err)
					}
					if strings.HasPrefix(name, "10 disks") && !strings.HasPrefix(view, "smb") {
						said := html.UnescapeString(r.out + r.err)
						if !strings.Contains(said, "does not answer: ") || strings.Contains(said, "it hangs") || strings.Contains(said, "move the pods") {
							t.Errorf("%s does not say just that disks do not answer:\n%s%s", view, r.out, r.err)
						}
					}
					if strings.HasPrefix(view, "disk") || strings.HasPrefix(view, "volume") || strings.HasPrefix(view, "smb") {
						return
					}
					if (r.code == command.ExitProblems) != (view == "doctor") || r.err != "" {
						t.Errorf("%s: exit code %d: %s", view, r.code, r.err)
					}
					text := strings.ToLower(strings.ReplaceAll(html.UnescapeString(r.out), `\\`, `\`)) // of JSON
					for _, want := range c.silent {
						if !strings.Contains(text, strings.ReplaceAll(want, `\\`, `\`)) && !strings.HasSuffix(view, "json") {
							t.Errorf("%s does not name %s:\n%s", view, want, r.out)
						}
					}
					for i := range c.pods {
						if !strings.Contains(text, podUID(i)) {
							t.Errorf("%s does not name pod %s:\n%s", view, podUID(i), r.out)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// TestNode_Waits: a pod that waits for its volume is not a typo, and the call that it waits for says why.
func TestNode_Waits(t *testing.T) {
	model := winsim.Default()
	model.Files = append(model.Files, winsim.File{Path: `C:\var\lib\kubelet\pods\` + podUID(1) + `\volumes\kubernetes.io~csi\pvc-1`})
	n := startNode(t, model)
	show := func(args ...string) result { return run(context.WithoutCancel(t.Context()), n.dir, "", args...) }
	const missing = `\\?\Volume{dead0000-0000-0000-0000-000000000000}\`
	show("volume", "mount", missing, podPath(1))
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"node --pod " + podUID(1), 0, []string{"pod " + podUID(1) + " is known, and waits for a volume or has none", "calls that failed lately", "MountVolume", "(NotFound)", missing}},
		{"node --pod 4", 1, []string{"nothing on this node matches --pod 4: one that has not started yet is known by its UID only"}},
		{"node --problems", 0, []string{"calls that failed lately"}},
		{"doctor", 0, []string{"failed calls", "MountVolume"}},
	} {
		r := show(strings.Fields(c.args)...)
		for _, want := range c.want {
			if !strings.Contains(r.out+r.err, want) {
				t.Errorf("%s: no %q in\n%s%s", c.args, want, r.out, r.err)
			}
		}
		if r.code != c.code {
			t.Errorf("%s: exit code %d", c.args, r.code)
		}
	}
	show("volume", "mount", missing, podPath(1))
	if r := show("node", "--pod", podUID(1)); !strings.Contains(r.out, "2 times") {
		t.Errorf("a repeated call: %s", r.out)
	}
	require.NoError(t, n.emulated.HangDisk(1))
	show("--timeout=200ms", "disk", "read-only", "1", "--yes")
	if r := show("node", "--problems"); !strings.Contains(r.out, "(DeadlineExceeded); number=1") {
		t.Errorf("a call that hung: %s", r.out)
	}
}
