package original

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writeFiles makes a directory with files.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestWrite(t *testing.T) {
	module := writeFiles(t, map[string]string{
		"integrationtests/utils.go":      "package integrationtests\n\nimport \"os\"\n\nfunc helper() { os.Exit(1) }\n",
		"integrationtests/a_test.go":     "package integrationtests\n\nimport \"os\"\n\nvar name = os.Args[0]\n",
		"integrationtests/left_test.go":  "package integrationtests\n",
		"integrationtests/sub/other.go":  "package sub\n",
		"integrationtests/README.md":     "text",
		"integrationtests/machine.proto": "text",
	})
	to := filepath.Join(t.TempDir(), "suite")
	s := Suite{Without: []string{"left_test.go"}, Helpers: []string{"helper"}}
	if err := s.write(to, module); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(to, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, entry.Name()+": "+strings.Join(strings.Fields(string(content)), " "))
	}
	want := []string{
		`a_test.go: package integrationtests import os "` + machinePackage + `" var name = os.Args[0]`,
		`machine_test.go: package integrationtests import ( "os" "testing" "` + machinePackage + `" ) func TestMain(m *testing.M) { os.Exit(machine.Main(m)) }`,
		`utils.go: package integrationtests`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestOverlay(t *testing.T) {
	module := writeFiles(t, map[string]string{
		"pkg/smb/smb_test.go": "package smb\n\nfunc TestKept() {}\n\nfunc TestHidden() { hidden() }\n",
	})
	root := writeFiles(t, map[string]string{"pkg/smb/smb.go": "", "pkg/smb/smb_test.go": "", "pkg/smb/more_test.go": ""})
	s := Suite{Units: []string{"smb"}, Helpers: []string{"TestHidden"}}
	path, err := s.overlay(root, t.TempDir(), module)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay struct{ Replace map[string]string }
	if err := json.Unmarshal(content, &overlay); err != nil {
		t.Fatal(err)
	}
	theirs := overlay.Replace[filepath.Join(root, "pkg/smb/smb_test.go")]
	if text, err := os.ReadFile(theirs); err != nil || string(text) != "package smb\n\nfunc TestKept() {}\n" {
		t.Errorf("their test: %q, %v", text, err)
	}
	if more, ok := overlay.Replace[filepath.Join(root, "pkg/smb/more_test.go")]; !ok || more != "" || len(overlay.Replace) != 2 {
		t.Errorf("our tests: %v", overlay.Replace)
	}
}

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
