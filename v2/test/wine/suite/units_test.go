//go:build linux && wine

package suite

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

var onlyUnits = flag.String("units", "", "`directories` of the packages whose tests TestUnits runs, with commas; all if empty")

// environments are what the tests of a package want to be asked for.
var environments = map[string][]string{
	"v2/cmd/csi-proxy":   {"CSI_PROXY_TEST_SERVICE=1"},
	"v2/cmd/pkg/ctl/scm": {"CSI_PROXY_TEST_SERVICE=1"},
}

// needLinks are the tests that skip themselves where they can make no links, by package. Where Wine stores links,
// they have to pass.
var needLinks = map[string][]string{
	"v2/pkg/utils":  {"TestIsPathSymlink"},
	"v2/pkg/winsim": {"TestMirrorDrives_Share"},
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

// run runs the tests of a package.
func (u unit) run(t *testing.T, p *machine) {
	t.Helper()
	dir := sources + `\` + strings.ReplaceAll(u.dir, "/", `\`)
	args := []string{"-test.short"}
	if pattern := u.skipped(); pattern != "" {
		args = append(args, "-test.skip="+pattern)
	}
	result := run(t, p, dir, environments[u.dir], u.binary(), args...)
	if p.links {
		result.wantPassed(t, needLinks[u.dir]...)
	}
	if err := os.Remove(filepath.Join(p.Path(binaries), u.binary())); err != nil { // all together are large
		t.Error(err)
	}
}

// build builds the test binaries of all packages in one run, since most of their code is the same.
func build(t *testing.T, p *machine, units []unit) {
	t.Helper()
	began := time.Now()
	keep, err := filepath.Abs("keep.sh")
	require.NoError(t, err)
	args := []string{"test", "-vet=off", "-count=1", "-tags=" + prefix.Tags, "-ldflags=-s -w", "-exec=" + keep}
	for _, u := range units {
		args = append(args, u.importPath)
	}
	t.Setenv("KEEP_IN", p.Path(binaries))
	t.Setenv("KEEP_BELOW", root(t))
	t.Setenv("GOTMPDIR", p.Path(binaries)) // so that keeping a binary copies nothing
	goTool(t, args...)
	t.Logf("%d test binaries were built for Windows in %s", len(units), since(began))
}

// unitsToRun are the packages with tests, without those that are excepted as a whole, and those that were not asked
// for.
func unitsToRun(t *testing.T) []unit {
	t.Helper()
	return slices.DeleteFunc(unitsWithExceptions(t), func(u unit) bool {
		if *onlyUnits != "" && !slices.Contains(strings.Split(*onlyUnits, ","), u.dir) {
			return true
		}
		return slices.ContainsFunc(u.exceptions, func(e exception) bool { return e.what == "" })
	})
}
