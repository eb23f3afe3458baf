//go:build unix

package command_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestDiskList_Dying: the list has what Windows knows of a disk that cannot be read, and standard error the reason.
func TestDiskList_Dying(t *testing.T) {
	model := winsim.Default()
	model.Disks[1].Dying = true
	model.Disks[2].ReadOnly = true
	n := startNode(t, model)
	r := run(t.Context(), n.dir, "", "disk", "list")
	const want = `DISK  SIZE      STATE      SERIAL      LOCATION
0     64.0 GiB  online     SYSTEM      0:0:0:0
1     10.0 GiB  online     WINSIM0001  1:0:0:0
2     1.0 GiB   read-only  WINSIM0002  1:0:0:1
3     20.0 GiB  online     WINSIM0003  1:0:0:2
`
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != 0 {
		t.Errorf("exit code %d\n%s", r.code, diff)
	}
	if want := "csi-proxyctl: disk 1: it cannot be read: the device reported an I/O error (Windows error 1117)\n"; r.err != want {
		t.Errorf("got %q, want %q", r.err, want)
	}
}

// TestVolumeList_Locked: standard error says why a volume has no size.
func TestVolumeList_Locked(t *testing.T) {
	model := winsim.Default()
	model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
		{Volume: &winsim.Volume{ID: "00000000-0000-0000-0000-000000000001", State: winsim.Locked}},
	}})
	n := startNode(t, model)
	for _, args := range [][]string{{"volume", "list", "--disk", "4"}, {"volume", "list", "--disk", "4", "--api-version", "v1"}} {
		r := run(t.Context(), n.dir, "", args...)
		if !strings.Contains(r.out, "4     1     00000000-0000-0000-0000-000000000001  locked  -     -     -    -   -\n") {
			t.Errorf("%q: %s", args, r.out)
		}
		if want := "csi-proxyctl: volume 00000000-0000-0000-0000-000000000001: locked by BitLocker: unlock it to read it\n"; r.err != want {
			t.Errorf("%q: got %q, want %q", args, r.err, want)
		}
	}
}

// TestNode_Width: on a terminal no line is wider than the terminal, with or without colours.
func TestNode_Width(t *testing.T) {
	n := startNode(t, winsim.Busy())
	draw := func(width int, colours bool, args ...string) string {
		var out, errs bytes.Buffer
		code := command.Run(t.Context(), append([]string{"node", "--endpoint-dir", n.dir}, args...), command.Environment{
			Out: &out, Err: &errs, Terminal: colours, Width: func() int { return width },
			Getenv: func(string) string { return "" },
		})
		if code != 0 {
			t.Fatal(errs.String())
		}
		return out.String()
	}
	for _, width := range []int{80, 100} {
		plain := draw(width, false)
		for line := range strings.Lines(plain) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > width {
				t.Errorf("%d characters: %s", n, line)
			}
		}
		coloured := draw(width, true)
		for _, escape := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
			coloured = strings.ReplaceAll(coloured, escape, "")
		}
		if diff := cmp.Diff(plain, coloured); diff != "" {
			t.Errorf("colours change the text: %s", diff)
		}
	}
	if wide := draw(80, false, "-o", "wide"); strings.Contains(wide, "…") || !strings.Contains(wide, `csi.example.com\web\globalmount`) {
		t.Errorf("-o wide leaves something out:\n%s", wide)
	}
}

// TestViews_HungDisks: with ten disks that hang, all views end by themselves and say so.
func TestViews_HungDisks(t *testing.T) {
	t.Parallel() // it waits for half a minute
	model := winsim.Default()
	for i := range 10 {
		id := fmt.Sprintf("0a0a0a0a-0000-0000-0000-%012d", i)
		stage, pod := fmt.Sprintf(`C:\var\lib\kubelet\plugins\hung\%d`, i), fmt.Sprintf(`C:\var\lib\kubelet\pods\hung-%d`, i)
		model.Disks = append(model.Disks, winsim.Disk{
			Size: winsim.GiB, Serial: fmt.Sprintf("HUNG%d", i), Hanging: true,
			Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{ID: id}}},
		})
		model.Files = append(model.Files, winsim.File{Path: stage, Volume: id}, winsim.File{Path: pod, Symlink: stage})
	}
	n := startNode(t, model)
	var all sync.WaitGroup
	for view, code := range map[string]int{"node": command.ExitOK, "doctor": command.ExitFindings} {
		all.Go(func() {
			r := run(context.WithoutCancel(t.Context()), n.dir, "", strings.Fields(view)...)
			if r.code != code || r.err != "" || strings.Count(r.out, "no answer in time") < 10 {
				t.Errorf("%s: exit code %d: %s%s", view, r.code, r.err, r.out)
			}
		})
	}
	all.Wait()
}
