package winpathtest

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

func TestCorpus(t *testing.T) {
	cases := Corpus()
	if len(cases) < 260 {
		t.Errorf("the corpus has shrunk to %d cases", len(cases))
	}
	lines := map[string]int{}
	verdicts := map[Verdict]int{}
	for _, c := range cases {
		if other, twice := lines[c.Path]; twice {
			t.Errorf("line %d repeats line %d: %.80q", c.Line, other, c.Path)
		}
		lines[c.Path] = c.Line
		verdicts[c.Verdict]++
	}
	for _, verdict := range []Verdict{Inside, Outside, Invalid} {
		if verdicts[verdict] < 30 {
			t.Errorf("only %d cases are %s", verdicts[verdict], verdict)
		}
	}
}

func TestParse(t *testing.T) {
	cases, err := parse("# remark\n\n## trick\n# why\ninside\tC:\\a\ninvalid\t\"C:\\\\\\x00{ab*3}\"\noutside\tC:\\{x}{y*2}\n")
	require.NoError(t, err)
	want := []Case{
		{Line: 5, Group: "trick", Path: `C:\a`, Verdict: Inside},
		{Line: 6, Group: "trick", Path: "C:\\\x00ababab", Verdict: Invalid},
		{Line: 7, Group: "trick", Path: `C:\{x}yy`, Verdict: Outside},
	}
	if len(cases) != len(want) {
		t.Fatalf("%d cases: %+v", len(cases), cases)
	}
	for i := range want {
		if cases[i] != want[i] {
			t.Errorf("case %d is %+v, want %+v", i, cases[i], want[i])
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	for line, want := range map[string]string{
		"C:\\a":                     "no tab",
		"maybe\tC:\\a":              "unknown verdict",
		"inside\t":                  "quoted",
		"inside\tC:\\a ":            "quoted",
		"inside\tC:\\\u00e4":        "quoted",
		"inside\t\"C:\\\\a":         "invalid syntax",
		"inside\t\"C:\\\\a\" # why": "invalid syntax",
	} {
		if _, err := parse("## trick\n" + line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("parse(%q): %v; want an error that says %q", line, err, want)
		}
	}
	if _, err := parse("inside\tC:\\a"); err == nil || !strings.Contains(err.Error(), "group") {
		t.Errorf("a case without a group: %v", err)
	}
}
