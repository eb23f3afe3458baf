//go:build linux

package suite

import (
	"errors"
	"strings"
	"testing"
)

// TestExceptions: the exceptions of TestUnits belong to something, and no test is dropped without one. It needs no
// Wine.
func TestExceptions(t *testing.T) {
	if units := unitsWithExceptions(t); len(units) < 60 {
		t.Errorf("only %d packages have tests for Windows", len(units))
	}
}

// planted are packages for the lists of TestExceptions_Wrong.
func planted() (windows, linux []unit) {
	both := map[string]string{"both_test.go": "package a\nfunc TestBoth(t *testing.T) {\n"}
	windows = []unit{{dir: "a", files: both}}
	linux = []unit{
		{dir: "a", files: map[string]string{"both_test.go": both["both_test.go"], "socket_test.go": "package a\nfunc TestSocket(t *testing.T) {\n"}},
		{dir: "b", files: map[string]string{"b_test.go": "package b\nfunc TestSignal(t *testing.T) {\n"}},
	}
	return windows, linux
}

// inOrder excepts what must be excepted of the planted packages.
const inOrder = `
a  unix  socket_test.go  # sockets
b  unix  *               # signals
`

func TestExceptions_InOrder(t *testing.T) {
	windows, linux := planted()
	all, problems := parseExceptions(inOrder + "a fails TestBoth # Wine cannot")
	problems = append(problems, except(windows, linux, all)...)
	if len(problems) > 0 {
		t.Error(problems)
	}
	if given := windows[0].exceptions; len(given) != 1 || given[0] != (exception{"a", fails, "TestBoth"}) {
		t.Errorf("the package has the exceptions %v", given)
	}
}

func TestExceptions_Wrong(t *testing.T) {
	for line, want := range map[string]string{
		"a slow":                           "a line has",
		"a slow TestBoth TestMore # x":     "a line has",
		"a slow TestBoth":                  "the reason",
		"a slow TestBoth #":                "the reason",
		"a boring TestBoth # x":            `no kind "boring"`,
		"a fails * # x":                    "name the tests",
		"a unix TestSocket # x":            "name a file",
		"a slow TestBoth/( # x":            "error parsing regexp",
		"a unix socket_test.go # x":        "excepted already",
		"b unix b_test.go # x":             "excepted already",
		"c slow * # x":                     "no such package",
		"c unix * # x":                     "no such package",
		"c unix c_test.go # x":             "no such package",
		"a slow TestNone # x":              "no such test",
		"a slow TestBot # x":               "no such test",
		"a slow TestSocket # x":            "no such test",
		"b slow TestSignal # x":            "excepted already",
		"a unix * # x":                     "there are tests for Windows",
		"a unix none_test.go # x":          "no such file",
		"a unix both_test.go # x":          "is built for Windows",
		"a apart * # x\na slow TestNo # x": "no such test",
	} {
		windows, linux := planted()
		all, problems := parseExceptions(inOrder + line)
		problems = append(problems, except(windows, linux, all)...)
		if len(problems) == 0 || !strings.Contains(errors.Join(problems...).Error(), want) {
			t.Errorf("%q: got %v, want %q", line, problems, want)
		}
	}
}

// TestExceptions_Missing: what is dropped needs a line.
func TestExceptions_Missing(t *testing.T) {
	for list, want := range map[string]string{
		"b unix * # x":                             "the tests of socket_test.go are not built for Windows",
		"a unix socket_test.go # x":                "the tests of b_test.go are not built for Windows",
		"b unix * # x\na slow * # x":               "the tests of socket_test.go are not built for Windows",
		"a unix socket_test.go # x\nb slow * # x ": "the tests of b_test.go are not built for Windows",
	} {
		windows, linux := planted()
		all, problems := parseExceptions(list)
		if len(problems) > 0 {
			t.Errorf("%q: %v", list, problems)
		}
		if problems := except(windows, linux, all); len(problems) == 0 || !strings.Contains(errors.Join(problems...).Error(), want) {
			t.Errorf("%q: got %v, want %q", list, problems, want)
		}
	}
}

// TestExceptions_Unneeded: a test that is said to fail has to.
func TestExceptions_Unneeded(t *testing.T) {
	exit := errors.New("exit status 1")
	for output, c := range map[string]struct {
		err  error
		want string
	}{
		"=== RUN   TestX\n--- FAIL: TestX (0.00s)\nFAIL\n":  {exit, ""},
		"=== RUN   TestX\n--- PASS: TestX (0.00s)\nPASS\n":  {nil, "it does not fail"},
		"=== RUN   TestX\n--- SKIP: TestX (0.00s)\nPASS\n":  {nil, "it does not fail"},
		"testing: warning: no tests to run\nPASS\n":         {nil, "it does not fail"},
		"=== RUN   TestX\npanic: test timed out after 8m\n": {exit, "did not come to its end"},
	} {
		switch err := (exception{"a", fails, "TestX"}).unneeded(output, c.err); {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", output, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q: got %v, want %q", output, err, c.want)
		}
	}
}
