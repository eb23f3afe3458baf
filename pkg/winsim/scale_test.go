package winsim_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// deep is as long as a path can be: 16,000 names of one letter.
var deep = strings.Repeat(`x\`, 15999) + "x"

// TestDeepPath: the longest path works, and a longer one is too long.
func TestDeepPath(t *testing.T) {
	node, ctx := newNode(t, winsim.Default()), t.Context()
	mustAll(t, node.Mkdir(`C:\`+deep))
	for _, path := range []win.Path{win.Following(`C:\` + deep), {Base: `C:\`, Rest: deep}} {
		if info, err := node.FileInfo(ctx, path); err != nil || !info.Directory {
			t.Errorf("%d characters: %+v, %v", len(path.String()), info, err)
		}
	}
	if _, err := node.FileInfo(ctx, win.Path{Base: `C:\`, Rest: deep + `\` + deep}); !bare(err, winerr.FilenameExcedRange) {
		t.Errorf("a path of twice the length: %v, want code 206", err)
	}
	mustAll(t, node.RemoveAll(`C:\x`))
}

// BenchmarkDeepPath: the cost of a name on the way does not depend on their number.
func BenchmarkDeepPath(b *testing.B) {
	for _, names := range []int{1000, 16000} {
		path := deep[:2*names-1]
		node, err := winsim.New(winsim.Default())
		mustAll(b, err)
		perName := func(b *testing.B) {
			b.Helper()
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*names), "ns/name")
		}
		b.Run(fmt.Sprintf("Mkdir/names=%d", names), func(b *testing.B) {
			for b.Loop() {
				mustAll(b, node.Mkdir(`C:\`+path))
				b.StopTimer()
				_ = node.RemoveAll(`C:\x`)
				b.StartTimer()
			}
			perName(b)
		})
		mustAll(b, node.Mkdir(`C:\`+path))
		b.Run(fmt.Sprintf("FileInfo/names=%d", names), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := node.FileInfo(b.Context(), win.Path{Base: `C:\`, Rest: path}); err != nil {
					b.Fatal(err)
				}
			}
			perName(b)
		})
	}
}

// fill makes a directory with entries of similar long names, which all have short ones.
func fill(tb testing.TB, node *winsim.Node, count int) {
	tb.Helper()
	dir, err := node.OpenDirectory(tb.Context(), win.Following(`C:\many`))
	if err != nil {
		tb.Fatal(err)
	}
	defer dir.Close()
	for i := range count {
		if err := dir.CreateDirectory(tb.Context(), fmt.Sprintf("persistent-volume-claim-%06d", i)); err != nil {
			tb.Fatal(err)
		}
	}
}

// empty removes what is in a directory as a caller of the seam does.
func empty(ctx context.Context, dir win.Tree, name string) error {
	return dir.ListDirectory(ctx, name, func(opened win.Tree, entries []win.DirEntry) error {
		for _, entry := range entries {
			if err := opened.Remove(ctx, entry.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkLargeDirectory makes and removes a directory with many entries, with short names
// and without.
func BenchmarkLargeDirectory(b *testing.B) {
	const count = 100000
	for _, shortNames := range []bool{true, false} {
		b.Run(fmt.Sprintf("shortNames=%v", shortNames), func(b *testing.B) {
			b.ReportAllocs()
			var held, listing uint64
			for b.Loop() {
				node, err := winsim.New(winsim.Model{
					Volumes: []winsim.Volume{{ID: guid1, Letter: "C", NoShortNames: !shortNames}},
					Files:   []winsim.File{{Path: `C:\many`}},
				})
				mustAll(b, err)
				before := heap()
				fill(b, node, count)
				held = heap() - before
				root, err := node.OpenDirectory(b.Context(), win.Following(`C:\`))
				mustAll(b, err)
				start := allocated()
				mustAll(b, empty(b.Context(), root, "many"))
				listing = allocated() - start
				root.Close()
			}
			b.ReportMetric(float64(held)/count, "B-held/entry")
			b.ReportMetric(float64(listing)/count, "B-removing/entry")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/entry")
		})
	}
}

// heap is how much memory is in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// allocated is how much memory was allocated so far.
func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// TestShortNames_Many: every entry of a large directory has a short name of its own.
func TestShortNames_Many(t *testing.T) {
	const count = 5000
	node := newNode(t, winsim.Default())
	mustAll(t, node.Mkdir(`C:\many`))
	fill(t, node, count)
	seen := map[string]bool{}
	for _, name := range list(t, open(t, node, `C:\`), "many") {
		short, err := node.ShortName(`C:\many\` + name)
		if err != nil || short == "" || len(short) > 8 || seen[short] {
			t.Fatalf("%s: %q, %v, the same as of another one: %v", name, short, err, seen[short])
		}
		seen[short] = true
	}
	if len(seen) != count {
		t.Errorf("%d short names, want %d", len(seen), count)
	}
}

// BenchmarkOpen is what a change costs on a node whose state is kept in a file, one at a time
// and from many callers, who share what is written.
func BenchmarkOpen(b *testing.B) {
	for _, disks := range []int{0, 200} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("disks=%d/callers=%d", disks, callers), func(b *testing.B) {
				model := winsim.Default()
				for range disks {
					model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{}}}})
				}
				path := filepath.Join(b.TempDir(), "node.json")
				node, closeFile, err := winsim.Open(model, path, func(err error) { b.Error(err) })
				mustAll(b, err)
				defer closeFile()
				saved, err := os.Stat(path)
				mustAll(b, err)
				b.ReportMetric(float64(saved.Size()), "bytes")
				var all sync.WaitGroup
				for caller := range callers {
					all.Go(func() {
						path := fmt.Sprintf(`C:\%d`, caller)
						for range max(1, b.N/callers/2) {
							if err := errors.Join(node.Mkdir(path), node.RemoveAll(path)); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
			})
		}
	}
}
