package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	const page = "Before.\n<!-- measured: rpc -->\nold\n<!-- end -->\nBetween.\n<!-- measured: growth -->\n<!-- end -->\nAfter.\n"
	got, err := fill(page, map[string]string{"rpc": "new $1\n", "growth": "grown"})
	const want = "Before.\n<!-- measured: rpc -->\nnew $1\n<!-- end -->\nBetween.\n<!-- measured: growth -->\ngrown\n<!-- end -->\nAfter.\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
	again, err := fill(got, map[string]string{"rpc": "new $1\n", "growth": "grown"})
	if err != nil || again != want {
		t.Errorf("the second time: %v\n%s", err, again)
	}
	for name, sections := range map[string]map[string]string{
		"a section without a block": {"rpc": "", "growth": "", "more": ""},
		"a block without a section": {"rpc": ""},
	} {
		if _, err := fill(page, sections); err == nil {
			t.Errorf("%s is not an error", name)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestSVG: the picture is well-formed, every point is in the frame, and ten times as much is
// as far apart at both ends of an axis.
func TestSVG(t *testing.T) {
	p := plot{title: "a < b", x: "x", y: "y", series: []series{{"one & two", [][2]float64{{1, 10}, {10, 100}, {100, 1000}}}, {name: "nothing"}}}
	var circles []struct{ x, y string }
	for decoder := xml.NewDecoder(strings.NewReader(p.svg())); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "circle" {
			circles = append(circles, struct{ x, y string }{element.Attr[0].Value, element.Attr[1].Value})
		}
	}
	// The frame is 460 wide from 70, and 340 high up from 380.
	want := []struct{ x, y string }{{"70.0", "380.0"}, {"300.0", "210.0"}, {"530.0", "40.0"}}
	if len(circles) != len(want) {
		t.Fatalf("the points are %v, want %v", circles, want)
	}
	for i := range want {
		if circles[i] != want[i] {
			t.Errorf("point %d is at %v, want %v", i, circles[i], want[i])
		}
	}
	if empty := (plot{}).svg(); !strings.HasSuffix(empty, "</svg>\n") {
		t.Errorf("without points: %s", empty)
	}
}

// TestRun writes the page of this repository from a few results, into another directory.
func TestRun(t *testing.T) {
	root, repository := t.TempDir(), filepath.Join("..", "..")
	copyFile := func(name string) {
		content, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700), os.WriteFile(filepath.Join(root, name), content, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	copyFile("docs/performance.md")
	copyFile("pkg/disk/hostapi/testdata/calls.txt")
	copyFile("test/wine/systemcalls/testdata/calls.txt")
	copyFile("test/wine/systemcalls/testdata/messages.txt")
	results := filepath.Join(root, "results.txt")
	if err := os.WriteFile(results, []byte(output), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(root, []string{results, filepath.Join(root, "none.txt")}); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| 1,000 | 5,000 | 700 | 10 clients at once | 900 | 40,000 | 40.0 |",
		"| daemon | 100 | 1,600 | 2,900 | 3,001 | 1,300 | 1,401 | 1.25 | 0.2 | 260 |",
		"| expand | daemon | 100.0 | 50.0, 51.2 |  | 100.0, 200.0 |",
		"| PathExists | 8 | shared | 1.05 | 21,216 | 20,245 | 277,376 |", "| disk: GetDiskState | 1 | DiskAttributes |", "| PathExists | 1 | 0 | NtQueryAttributesFile |", leftOut,
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if err := run(root, nil); err == nil {
		t.Error("a report of nothing is not an error")
	}
}

// output is what make bench prints.
const output = `goos: linux
I1115 09:44:18.747174   25246 serve.go:63] "Serving" version="devel"
BenchmarkRPC/call=PathExists/connections=shared/callers=8-2         	       5	       134.7 echo-allocs	     20245 echo/s	         1.048 ratio	    277376 raw/s	       151.6 server-allocs	     21216 server/s
BenchmarkGrowth/disks=10/call=ListDiskIDs-2         	     524	    240000 ns/op	        34.00 calls/op
BenchmarkGrowth/disks=1000/call=ListDiskIDs-2         	     524	    99 ns/op	        99.00 calls/op
BenchmarkGrowth/disks=1000/call=ListDiskIDs-2         	     524	    24000000 ns/op	        3004 calls/op
BenchmarkGrowth/disks=10/call=New_and_Remove-2         	     1	    1000 ns/op	        2 calls/op
BenchmarkDescribe/disks=1000/clients=10-2         	       3	 900000000 ns/op	     40000 calls/op
BenchmarkLife/mode=daemon/volumes=1-2         	       1	      2400 all-ms	       830 calls/life	      1600 life-machine-ms	      2400 life-p50-ms	      2500 life-p99-ms	       100.0 expand-machine-ms	       150.0 expand-p50-ms	       151.2 expand-p99-ms	         0 waits-ms/life
BenchmarkLife/mode=daemon/volumes=100-2         	       1	      3000 all-ms	       260 calls/life	      2900 life-p50-ms	      3001 life-p99-ms	       200.0 expand-p50-ms	       300.0 expand-p99-ms	         0.25 waits-ms/life
BenchmarkWine/program=ours/Process	3	13.7 binary-MB	29.8 idle-MB
BenchmarkWine/program=original/Process	3	17.4 binary-MB	47.2 idle-MB
PASS
`
