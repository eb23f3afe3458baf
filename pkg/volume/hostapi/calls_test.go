package api_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// operations are what a driver does to a volume, in its order.
var operations = []struct {
	name string
	do   func(*winsim.Node, volumeapi.HostAPI) error
}{
	{"ListVolumesOnDisk", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.ListVolumesOnDisk(firstDisk, 0)
		return err
	}},
	{"IsVolumeFormatted, empty", isFormatted},
	{"FormatVolume", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.FormatVolume(id) }},
	{"FormatVolume, again", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.FormatVolume(id) }},
	{"IsVolumeFormatted", isFormatted},
	{"MountVolume", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.MountVolume(id, mount) }},
	{"MountVolume, again", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.MountVolume(id, mount) }},
	{"GetVolumeIDFromTargetPath", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.GetVolumeIDFromTargetPath(mount)
		return err
	}},
	{"GetVolumeIDFromTargetPath, by a link", func(n *winsim.Node, h volumeapi.HostAPI) error {
		if err := n.Symlink(target, mount); err != nil {
			return err
		}
		_, err := h.GetVolumeIDFromTargetPath(target)
		return err
	}},
	{"GetClosestVolumeIDFromTargetPath", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.GetClosestVolumeIDFromTargetPath(target)
		return err
	}},
	{"GetDiskNumberFromVolumeID", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, err := h.GetDiskNumberFromVolumeID(id)
		return err
	}},
	{"GetVolumeStats", func(_ *winsim.Node, h volumeapi.HostAPI) error {
		_, _, err := h.GetVolumeStats(id)
		return err
	}},
	{"WriteVolumeCache", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.WriteVolumeCache(id) }},
	{"ResizeVolume, nothing to do", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.ResizeVolume(id, 0) }},
	{"ResizeVolume", func(n *winsim.Node, h volumeapi.HostAPI) error {
		if err := n.GrowDisk(firstDisk, 2*winsim.GiB); err != nil {
			return err
		}
		return h.ResizeVolume(id, 0)
	}},
	{"UnmountVolume", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) }},
	{"UnmountVolume, again", func(_ *winsim.Node, h volumeapi.HostAPI) error { return h.UnmountVolume(id, mount) }},
}

func isFormatted(_ *winsim.Node, h volumeapi.HostAPI) error {
	_, err := h.IsVolumeFormatted(id)
	return err
}

// lifecycle runs the operations on a new node and returns how often each of them called
// what.
func lifecycle(t testing.TB) []map[string]int {
	t.Helper()
	node := nodeWith(t, unformatted())
	host := volumeapi.NewOn(node)
	var counts []map[string]int
	for _, o := range operations {
		node.ResetCalls()
		if err := o.do(node, host); err != nil {
			t.Fatalf("%s: %v", o.name, err)
		}
		counts = append(counts, node.Calls())
	}
	return counts
}

func sum(calls map[string]int) (n int) {
	for _, count := range calls {
		n += count
	}
	return n
}

// TestCalls pins how many calls of Windows each operation takes, and which.
func TestCalls(t *testing.T) {
	const file = "testdata/calls.txt"
	var b strings.Builder
	for i, calls := range lifecycle(t) {
		fmt.Fprintf(&b, "%-42s%2d", operations[i].name, sum(calls))
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			fmt.Fprintf(&b, " %s", name)
			if n := calls[name]; n > 1 {
				fmt.Fprintf(&b, "*%d", n)
			}
		}
		b.WriteString("\n")
	}
	if *update {
		must(t, os.WriteFile(file, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if b.String() != string(want) {
		t.Errorf("%s differs; run the test with -update if that is meant to be.\ngot:\n%swant:\n%s", file, &b, want)
	}
}

// BenchmarkCalls prints the same numbers next to the time that our part of them takes.
func BenchmarkCalls(b *testing.B) {
	counts := lifecycle(b)
	for i, o := range operations {
		switch o.name {
		case "IsVolumeFormatted", "GetVolumeStats", "GetDiskNumberFromVolumeID", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath":
		default:
			continue // they change the node
		}
		b.Run(o.name, func(b *testing.B) {
			node := nodeWith(b, formatted())
			must(b, node.MountFolder(mount, id))
			must(b, node.Symlink(target, mount))
			host := volumeapi.NewOn(node)
			b.ReportAllocs()
			for b.Loop() {
				must(b, o.do(node, host))
			}
			b.ReportMetric(float64(sum(counts[i])), "calls/op")
		})
	}
}
