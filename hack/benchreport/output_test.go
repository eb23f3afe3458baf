package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

func TestParse(t *testing.T) {
	results, err := parse(output)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.benchmark+" "+r.keys["call"])
	}
	if diff := cmp.Diff([]string{"RPC PathExists", "Growth ListDiskIDs", "Growth ListDiskIDs", "Growth New and Remove", "Describe ", "Life ", "Life ", "Wine ", "Wine "}, names); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if r := of(results, "RPC", "connections", "shared", "callers", "8"); len(r) != 1 || r[0].values["ratio"] != 1.048 || r[0].number("callers") != 8 {
		t.Errorf("that of 8 callers is %+v", r)
	}
	if r := of(results, "Growth", "disks", "1000"); len(r) != 1 || r[0].values["calls/op"] != 3004 {
		t.Errorf("of two lines the last should count: %+v", r)
	}
}

func TestParse_Fails(t *testing.T) {
	for _, text := range []string{"--- FAIL: BenchmarkRPC", "ok\nFAIL\n", "BenchmarkX-2 1 x ns/op"} {
		if results, err := parse(text); err == nil {
			t.Errorf("%q is read as %+v", text, results)
		}
	}
}

func TestGrown(t *testing.T) {
	results, err := parse(output)
	if err != nil {
		t.Fatal(err)
	}
	want := grownCall{things: "disks", call: "ListDiskIDs", few: 10, many: 1000, times: [2]float64{240000, 24000000}, calls: [2]float64{34, 3004}}
	if got := grown(results); len(got) != 2 || got[0] != want {
		t.Errorf("grown: %+v, want %+v first", got, want)
	}
	if row := "| disks: ListDiskIDs | 10 | 1,000 | 88.4 | 100.0 | 240.0 | 24000.0 |"; !strings.Contains(growth(results).String(), row) {
		t.Errorf("the table lacks %s:\n%s", row, growth(results))
	}
}

// TestBudgets_Questions: questions about files are compared with the original, and in a crowd with the
// echo.
func TestBudgets_Questions(t *testing.T) {
	const name = "/call=Rmdir-of-nothing/connections=shared/callers=64"
	results, err := parse("BenchmarkWine/program=ours" + name + "\t3\t0.89 ratio\t2000 server/s\t60.4 cpu-us\t50 echo-cpu-us\n" +
		"BenchmarkWine/program=original" + name + "\t3\t0.5 ratio\t1000 server/s\t54 cpu-us\n")
	if err != nil {
		t.Fatal(err)
	}
	got := budgets(results).String() + wineCalls(results).String()
	for _, want := range []string{
		"relative to the original, Rmdir of nothing, 64 callers | ≥ 1.00 | 2.00 | yes |",
		"relative to the echo, Rmdir of nothing, 64 callers | ≥ 0.90 | 0.89 | **no** |",
		"| Rmdir of nothing | 64 | shared | 2.00 | 0.89 | 0.50 | 2,000 | 1,000 | 60 | 54 | 50 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack %s:\n%s", want, got)
		}
	}
}

// TestBudgets: a promise that is not kept says so.
func TestBudgets(t *testing.T) {
	results, err := parse(output)
	if err != nil {
		t.Fatal(err)
	}
	got := budgets(results).String()
	for _, want := range []string{"| ≥ 0.95 | 1.05 (1.05 to 1.05) | yes |", "| ≤ 0.6 | 0.63 | **no** |", "| ≤ 15 | 13.7 | yes |", "| ≤ 1 | 0.88 | yes |"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %s:\n%s", want, got)
		}
	}
	if strings.Contains(got, "Start to first answer") {
		t.Errorf("the table has what was not measured:\n%s", got)
	}
}
