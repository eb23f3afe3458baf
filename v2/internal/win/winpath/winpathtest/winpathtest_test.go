package winpathtest

import (
	"testing"
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
