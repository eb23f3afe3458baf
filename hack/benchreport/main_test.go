package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestFill: tables and promises have what benchstat prints, without its intervals, and the rest of the page stays.
func TestFill(t *testing.T) {
	results := map[string]string{ // by filter
		"ratio": ".name: RPC\n,shared,,own,,,\n,1,,8,,,\n,ratio,CI,ratio,CI,vs base,P\nCheck,1.168,∞,0.9325,∞,~,p=1.000 n=1\nPath_Exists,,,0.946,∞\ngeomean,1,,1,\n",
		"units": ".name: Process\n,Process,\n,start-ms,CI\nours,76.37,∞\n\n,Process,\n,idle-B,CI\nours,3.1e+07,∞\n\n,Process,\n,sec/op,CI\nours,0.0015,∞\n",
	}
	r := report{run: func(args ...string) ([]byte, error) {
		return []byte(results[args[slices.Index(args, "-filter")+1]]), nil
	}}
	const page = `Before.
<!-- table: ratio; /call; /connections,/callers@(1 8) -->
old
<!-- end -->
<!-- table: units; /program -->
<!-- end -->
<!-- table: nothing; /program -->
<!-- end -->
| Fast <!-- least: ratio; /call --> | ≥ 0.95 | 7 | yes |
| Small <!-- median: units; /program; /program; 2 --> | ≤ 0.5 | | |
| Other <!-- most: nothing --> | ≤ 1 | 3 | yes |
`
	const want = `Before.
<!-- table: ratio; /call; /connections,/callers@(1 8) -->
| call | shared 1 ratio | own 8 ratio |
|---|--:|--:|
| Check | 1.17 | 0.932 |
| Path Exists | | 0.946 |
<!-- end -->
<!-- table: units; /program -->
| program | start-ms | idle-MB | µs/op |
|---|--:|--:|--:|
| ours | 76.4 | 31 | 1500 |
<!-- end -->
<!-- table: nothing; /program -->
Left out in this run.
<!-- end -->
| Fast <!-- least: ratio; /call --> | ≥ 0.95 | 0.932 (0.932 to 0.946) | **no** |
| Small <!-- median: units; /program; /program; 2 --> | ≤ 0.5 | 9.82 | **no** |
| Other <!-- most: nothing --> | ≤ 1 | | |
`
	if got := string(r.fill([]byte(page))); got != want || r.err != nil {
		t.Errorf("%v\n%s", r.err, got)
	}
	r.run = func(...string) ([]byte, error) { return nil, errors.New("out of order") }
	if r.fill([]byte(page)); r.err == nil || !strings.Contains(r.err.Error(), "-filter 'ratio'") {
		t.Errorf("a failed benchstat: %v", r.err)
	}
}
