//go:build linux && wine

package suite

import (
	"encoding/json"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// module is the path of the repository's modules: the client has it, and the other one has
// it with /v2.
const module = "github.com/kubernetes-csi/csi-proxy/"

// alsoForWindows are packages without a file that is for Windows only, whose subject is
// Windows all the same: the layouts of its structures, and its paths.
var alsoForWindows = []string{"internal/win/winlayout", "internal/win/winpath"}

// environments are what the tests of a package want to be asked for.
var environments = map[string][]string{
	"cmd/csi-proxy":    {"CSI_PROXY_TEST_SERVICE=1"},
	"internal/ctl/scm": {"CSI_PROXY_TEST_SERVICE=1"},
}

// TestUnits runs the tests of all packages that have code for Windows.
func TestUnits(t *testing.T) {
	p := open(t)
	dirs := windowsPackages(t)
	if len(dirs) < 10 {
		t.Errorf("only %d packages have code for Windows: %s", len(dirs), dirs)
	}
	copySources(t, p)
	packages := make([]string, len(dirs))
	for i, dir := range dirs {
		packages[i] = "./" + dir
	}
	compile(t, p, packages...)
	for _, dir := range dirs {
		t.Run(dir, func(t *testing.T) {
			run(t, p, sources+`\`+strings.ReplaceAll(dir, "/", `\`), environments[dir], path.Base(dir)+".test.exe")
		})
	}
}

var forWindows = regexp.MustCompile(`_windows(_test)?\.go$`)

// windowsPackages finds the directories of packages with tests and with files that are for
// Windows only.
func windowsPackages(t *testing.T) (dirs []string) {
	t.Helper()
	list := json.NewDecoder(strings.NewReader(goTool(t, "list", "-json=ImportPath,GoFiles,TestGoFiles,XTestGoFiles", "./...", "./client/...")))
	for {
		var p struct {
			ImportPath                         string
			GoFiles, TestGoFiles, XTestGoFiles []string
		}
		if err := list.Decode(&p); err == io.EOF {
			return dirs
		} else if err != nil {
			t.Fatal(err)
		}
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "v2/")
		tests := slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		wanted := slices.Contains(alsoForWindows, dir) || slices.ContainsFunc(slices.Concat(p.GoFiles, tests), forWindows.MatchString)
		if wanted && len(tests) > 0 && !strings.HasPrefix(dir, "test/") {
			dirs = append(dirs, dir)
		}
	}
}
