//go:build linux && wine

package suite

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var onlyUnits = flag.String("units", "", "`directories` of the packages whose tests TestUnits runs, with commas; all if empty")

// module is the path of the repository's modules: client and mounter have it, and the other one has it with
// /v2.
const module = "github.com/kubernetes-csi/csi-proxy/"

// environments are what the tests of a package want to be asked for.
var environments = map[string][]string{
	"cmd/csi-proxy":    {"CSI_PROXY_TEST_SERVICE=1"},
	"internal/ctl/scm": {"CSI_PROXY_TEST_SERVICE=1"},
}

// needLinks are the tests that skip themselves where they can make no links, by package. Where Wine stores links,
// they have to pass.
var needLinks = map[string][]string{
	"internal/win/local": {"TestFiles_DirectoryLink", "TestFiles_Junction", "TestFiles_MountPoint", "TestFiles_SwapJunction", "TestGlance_Links"},
	"pkg/utils":          {"TestIsPathSymlink"},
	"pkg/winsim":         {"TestMirrorDrives_Share", "TestOpen_Link"},
}

// unit is a package with tests.
type unit struct {
	importPath, dir string // dir is below the root of the repository
	files           []string
	exceptions      []exception
}

func (u unit) binary() string { return strings.ReplaceAll(u.dir, "/", "_") + ".test.exe" }

// TestUnits runs the tests of all packages, except those in exceptions.txt.
func TestUnits(t *testing.T) {
	p := open(t)
	units := unitsToRun(t)
	copySources(t, p)
	build(t, p, units)
	for _, u := range units {
		t.Run(u.dir, func(t *testing.T) { u.run(t, p) })
	}
}

// run runs the tests of a package, and those apart that have to fail.
func (u unit) run(t *testing.T, p *machine) {
	t.Helper()
	dir := sources + `\` + strings.ReplaceAll(u.dir, "/", `\`)
	args := []string{"-test.short"}
	var skipped []string
	for _, e := range u.exceptions {
		skipped = append(skipped, e.pattern())
		if e.kind == fails {
			u.mustFail(t, p, dir, e)
		}
	}
	if len(skipped) > 0 {
		args = append(args, "-test.skip="+strings.Join(skipped, "|"))
	}
	result := run(t, p, dir, environments[u.dir], u.binary(), args...)
	if p.links {
		result.wantPassed(t, needLinks[u.dir]...)
	}
	if err := os.Remove(filepath.Join(p.Path(binaries), u.binary())); err != nil { // all together are large
		t.Error(err)
	}
}

// mustFail runs a test that cannot pass under Wine. If it does, or does not even run, its exception is wrong.
func (u unit) mustFail(t *testing.T, p *machine, dir string, e exception) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	if output, err := execute(ctx, t, p, dir, environments[u.dir], u.binary(), "-test.short", "-test.run="+e.pattern()); err == nil {
		t.Errorf("%s does not fail; remove it from exceptions.txt:\n%s", e, output)
	}
}

// build builds the test binaries of all packages in one run, since most of their code is the same.
func build(t *testing.T, p *machine, units []unit) {
	t.Helper()
	began := time.Now()
	keep, err := filepath.Abs("keep.sh")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"test", "-vet=off", "-count=1", "-tags=grpcnotrace", "-ldflags=-s -w", "-exec=" + keep}
	for _, u := range units {
		args = append(args, u.importPath)
	}
	t.Setenv("KEEP_IN", p.Path(binaries))
	t.Setenv("KEEP_BELOW", root(t))
	t.Setenv("GOTMPDIR", p.Path(binaries)) // so that keeping a binary copies nothing
	goTool(t, args...)
	t.Logf("%d test binaries were built for Windows in %s", len(units), since(began))
}

// unitsToRun finds the packages with tests of the modules that are published, and checks the exceptions.
func unitsToRun(t *testing.T) []unit {
	t.Helper()
	exceptions, problems := parseExceptions(exceptionList)
	for _, problem := range problems {
		t.Error(problem)
	}
	units := allUnits(t, "windows")
	if len(units) < 60 {
		t.Errorf("only %d packages have tests", len(units))
	}
	allHere := allUnits(t, "linux")
	for _, u := range allHere {
		isForWindows := func(other unit) bool { return other.dir == u.dir }
		isExcepted := func(e exception) bool { return e.dir == u.dir && e.kind == unix }
		if listed := slices.ContainsFunc(exceptions, isExcepted); listed == slices.ContainsFunc(units, isForWindows) {
			t.Errorf("exceptions.txt: %s is listed as one for Unix: %v", u.dir, listed)
		}
	}
	for _, e := range exceptions {
		i := slices.IndexFunc(units, func(u unit) bool { return u.dir == e.dir })
		switch {
		case e.kind == unix && slices.ContainsFunc(allHere, func(u unit) bool { return u.dir == e.dir }):
			continue // see above
		case i < 0:
			t.Errorf("exceptions.txt: %s: there is no such package with tests", e.dir)
			continue
		}
		if e.test != "" && !e.exists(units[i].source(t)) {
			t.Errorf("exceptions.txt: %s: there is no such test", e)
		}
		units[i].exceptions = append(units[i].exceptions, e)
	}
	return slices.DeleteFunc(units, func(u unit) bool {
		switch {
		case *onlyUnits != "" && !slices.Contains(strings.Split(*onlyUnits, ","), u.dir):
			return true
		case *onlyLinks && needLinks[u.dir] == nil:
			return true
		}
		return slices.ContainsFunc(u.exceptions, func(e exception) bool { return e.test == "" })
	})
}

// source returns the files with the tests of a package.
func (u unit) source(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, file := range u.files {
		text, err := os.ReadFile(filepath.Join(root(t), u.dir, file))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// allUnits finds the packages with tests for a system.
func allUnits(t *testing.T, system string) (units []unit) {
	t.Helper()
	list := json.NewDecoder(strings.NewReader(goToolFor(t, system, "list", "-json=ImportPath,TestGoFiles,XTestGoFiles", "./...", "./client/...", "./mounter/...")))
	for {
		var p struct {
			ImportPath                string
			TestGoFiles, XTestGoFiles []string
		}
		if err := list.Decode(&p); err == io.EOF {
			return units
		} else if err != nil {
			t.Fatal(err)
		}
		if files := slices.Concat(p.TestGoFiles, p.XTestGoFiles); len(files) > 0 {
			dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "v2/")
			units = append(units, unit{importPath: p.ImportPath, dir: dir, files: files})
		}
	}
}
