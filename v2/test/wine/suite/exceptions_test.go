//go:build linux

package suite

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

//go:embed exceptions.txt
var exceptionList string

// exception is what TestUnits leaves out.
type exception struct {
	dir  string // of the package
	kind string
	what string // a test, for -test.run; of kind unix a file with tests; "" means all of the package
}

// kinds of exceptions; exceptions.txt says what they mean.
const (
	slow  = "slow"
	apart = "apart"
	here  = "here"
	unix  = "unix"
)

// parseExceptions reads a list of exceptions, and the lines that it cannot read.
func parseExceptions(list string) (all []exception, problems []error) {
	for number, line := range strings.Split(list, "\n") {
		text, reason, _ := strings.Cut(line, "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || strings.TrimSpace(reason) == "" || !slices.Contains([]string{slow, apart, here, unix}, fields[1]) {
			problems = append(problems, fmt.Errorf("exceptions.txt:%d: a line has a package, a kind, a test or a file, and # with the reason", number+1))
			continue
		}
		all = append(all, exception{fields[0], fields[1], strings.TrimPrefix(fields[2], "*")})
	}
	return all, problems
}

func (e exception) String() string { return e.dir + " " + e.kind + " " + e.what }

// pattern matches the test of an exception as -test.run and -test.skip do, a part of its name at a time.
func (e exception) pattern() string {
	parts := strings.Split(e.what, "/")
	parts[0] = regexp.QuoteMeta(parts[0])
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}

// unit is a package with tests.
type unit struct {
	importPath, dir string            // dir is below the root of the repository
	files           map[string]string // those with tests for one system, and what is in them
	exceptions      []exception
}

// testFunction begins what go test runs without being asked for more.
var testFunction = regexp.MustCompile(`(?m)^func (?:Test|Example|Fuzz)\w*\(`)

// has reports whether one of the files has the test of an exception.
func (u unit) has(e exception) bool {
	name, _, _ := strings.Cut(e.what, "/")
	return slices.ContainsFunc(slices.Collect(maps.Values(u.files)), func(text string) bool { return strings.Contains("\n"+text, "\nfunc "+name+"(") })
}

// skipped is what -test.skip has to be for the exceptions of single tests; it may be empty.
func (u unit) skipped() string {
	var patterns []string
	for _, e := range u.exceptions {
		if e.what != "" {
			patterns = append(patterns, e.pattern())
		}
	}
	return strings.Join(patterns, "|")
}

// except gives the packages for Windows their exceptions, and returns what is wrong with these: an exception that
// belongs to nothing, and tests that a build for Windows drops without one. The second list are the packages for
// Linux.
func except(windows, linux []unit, exceptions []exception) (problems []error) {
	complain := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("exceptions.txt: "+format, args...))
	}
	find := func(units []unit, dir string) *unit {
		if i := slices.IndexFunc(units, func(u unit) bool { return u.dir == dir }); i >= 0 {
			return &units[i]
		}
		return nil
	}
	for _, e := range exceptions {
		onWindows, onLinux := find(windows, e.dir), find(linux, e.dir)
		dropped := onLinux != nil && (e.what == "" && onWindows == nil || onLinux.files[e.what] != "" && (onWindows == nil || onWindows.files[e.what] == ""))
		switch {
		case e.kind == unix && !dropped:
			complain("%s: no tests for Linux alone", e)
		case e.kind == unix:
		case onWindows == nil || e.what != "" && !onWindows.has(e):
			complain("%s: no such tests for Windows", e)
		default:
			onWindows.exceptions = append(onWindows.exceptions, e)
		}
	}
	for _, u := range linux {
		onWindows := find(windows, u.dir)
		for file := range u.files {
			isListed := func(e exception) bool {
				return e.dir == u.dir && e.kind == unix && (e.what == "" || e.what == file)
			}
			if (onWindows == nil || onWindows.files[file] == "") && !slices.ContainsFunc(exceptions, isListed) {
				complain("%s: the tests of %s are not built for Windows; say why", u.dir, file)
			}
		}
	}
	return problems
}

// allUnits finds the packages with tests for a system, of the modules that are published.
func allUnits(t *testing.T, system string) (units []unit) {
	t.Helper()
	list := json.NewDecoder(strings.NewReader(goToolFor(t, system, "list", "-json=ImportPath,Dir,TestGoFiles,XTestGoFiles", "./client/...", "./mounter/...", "./mounter/mountertest/...", "./v2/...", "./v2/cmd/...", "./v2/test/...")))
	for {
		var p struct {
			ImportPath, Dir           string
			TestGoFiles, XTestGoFiles []string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			return units
		} else if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(root(t), p.Dir)
		require.NoError(t, err)
		u := unit{importPath: p.ImportPath, dir: dir, files: map[string]string{}}
		for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			require.NoError(t, err)
			if testFunction.Match(text) {
				u.files[file] = string(text)
			}
		}
		if len(u.files) > 0 {
			units = append(units, u)
		}
	}
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := prefix.Root()
	require.NoError(t, err)
	return dir
}

func goToolFor(t *testing.T, system string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, output, stderr.String())
	}
	return string(output)
}

// unitsWithExceptions finds the packages with tests for Windows, and checks the exceptions.
func unitsWithExceptions(t *testing.T) []unit {
	t.Helper()
	exceptions, problems := parseExceptions(exceptionList)
	units := allUnits(t, "windows")
	for _, problem := range append(problems, except(units, allUnits(t, "linux"), exceptions)...) {
		t.Error(problem)
	}
	return units
}

// TestExceptions: the exceptions of TestUnits belong to something, and no test is dropped without one. It needs no
// Wine.
func TestExceptions(t *testing.T) {
	if units := unitsWithExceptions(t); len(units) < 60 {
		t.Errorf("only %d packages have tests for Windows", len(units))
	}
}
