package original

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const events = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/one"}
{"Action":"output","Test":"TestA/one","Output":"why\n"}
{"Action":"fail","Test":"TestA/one"}
{"Action":"run","Test":"TestA/two/deep"}
{"Action":"pass","Test":"TestA/two/deep"}
{"Action":"pass","Test":"TestA/two"}
{"Action":"fail","Test":"TestA"}
{"Action":"pass","Test":"TestB/below"}
{"Action":"output","Test":"TestB","Output":"its own check\n"}
{"Action":"fail","Test":"TestB"}
{"Action":"skip","Test":"TestC"}
{"Action":"run","Test":"TestD"}
{"Action":"fail"}
`

func TestParseEvents(t *testing.T) {
	got, err := parseEvents([]byte(events))
	if err != nil {
		t.Fatal(err)
	}
	want := []Result{
		{Test: "TestA/one", Action: "fail", Output: "why\n"},
		{Test: "TestA/two/deep", Action: "pass"},
		{Test: "TestB", Action: "fail", Output: "its own check\n", parent: true},
		{Test: "TestB/below", Action: "pass"},
		{Test: "TestC", Action: "skip"},
		{Test: "TestD", Action: "fail"}, // the process ended
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := parseEvents([]byte("panic: x\n")); err == nil {
		t.Error("a line that is not an event is no error")
	}
}

func TestJudge(t *testing.T) {
	results := []Result{{Test: "TestA", Action: "pass"}, {Test: "TestB", Action: "fail"}, {Test: "TestC", Action: "skip"}, {Test: "TestP", Action: "fail", parent: true}}
	s := Suite{Name: "suite", Tests: 3}
	for name, test := range map[string]struct {
		expected string
		tests    int
		want     []string
	}{
		"as expected":    {"suite TestB: b\nsuite TestC: c\n# remark\nsuite TestP: p\nother TestA: a", 3, nil},
		"unexpected":     {"suite TestC: c\nsuite TestP: p", 3, []string{"TestB: fail"}},
		"skipped":        {"suite TestB: b\nsuite TestP: p", 3, []string{"TestC: skip"}},
		"own check":      {"suite TestB: b\nsuite TestC: c", 3, []string{"TestP: fail"}},
		"passes":         {"suite TestA: a\nsuite TestB: b\nsuite TestC: c\nsuite TestP: p", 3, []string{"TestA passes"}},
		"does not exist": {"suite TestB: b\nsuite TestC: c\nsuite TestP: p\nsuite TestX: x", 3, []string{"TestX does not exist"}},
		"lost tests":     {"suite TestB: b\nsuite TestC: c\nsuite TestP: p", 4, []string{"3 tests ran, want 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			reasons, err := parseExpected(test.expected)
			if err != nil {
				t.Fatal(err)
			}
			s.Tests = test.tests
			got := s.judge(results, reasons)
			if !slices.EqualFunc(got, test.want, strings.HasPrefix) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestTables(t *testing.T) {
	results := []Result{{Test: "TestA", Action: "pass"}, {Test: "TestB", Action: "fail"}, {Test: "TestP", Action: "fail", parent: true}}
	reasons, err := parseExpected("suite TestB: of Linux")
	if err != nil {
		t.Fatal(err)
	}
	tables := newTables()
	tables.add(Suite{Name: "suite", Module: Suites[0].Module}, results, reasons)
	want := `| Suite | Module | Tests | Pass |
|---|---|---|---|
| suite | 'github.com/kubernetes-csi/csi-proxy/v2@v2.0.0-alpha.2' | 2 | 1 |

| Suite | Test | Result |
|---|---|---|
| suite | 'TestA' | pass |
| suite | 'TestB' | fail: of Linux |
| suite | 'TestP' | fail |
`
	if got := tables.String(); got != strings.ReplaceAll(want, "'", "`") {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseExpected(t *testing.T) {
	text, err := os.ReadFile("expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := parseExpected(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for e := range reasons {
		if !slices.ContainsFunc(Suites, func(s Suite) bool { return s.Name == e.suite }) {
			t.Errorf("there is no suite %q", e.suite)
		}
	}
	for _, wrong := range []string{"suite TestA", "TestA: reason", "suite TestA: a\nsuite TestA: b"} {
		if _, err := parseExpected(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
}
