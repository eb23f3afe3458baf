// Package architecture checks the rules between packages against the code: the rooms in rooms_test.go, and the
// rules in this file. It also checks the limits in docs/status.md, that importing does no work, and that other
// modules can use ours.
package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

const root = "../../../.."

// rule says which packages some packages of ours must not import, and why.
//
// Both are lists of patterns, separated by spaces: a/... is a and all below it, * any
// part between two slashes, and ! takes packages out of the list again. Our own packages
// go by their path in the repository, those of the library with v2 in front.
type rule struct {
	packages  string
	reach     reach
	forbidden string
	why       string
}

// reach is how far a rule looks.
type reach int

const (
	direct            reach = iota // what the files of the package import
	transitive                     // and what that imports, and so on
	transitiveOnLinux              // the same, but not when compiled for Windows
)

// What the rules speak of more than once.
const (
	anyOfUs    = "v2/... client/..."
	windowsAPI = "golang.org/x/sys/windows/... github.com/go-ole/... github.com/Microsoft/go-winio/..."
	separate   = "groups are independent of each other and of the emulator"
	audit      = "one place to audit"
)

// rules are what the order of the rooms does not say, for Linux and for Windows.
var rules = []rule{
	{"v2/pkg/... v2/internal/...", transitive, "google.golang.org/grpc/... google.golang.org/protobuf/... github.com/prometheus/... client/... v2/cmd/...", "a HostProcess driver must not pay for the daemon"},
	{"v2/pkg/disk/...", transitive, "v2/pkg/... !v2/pkg/disk/...", separate},
	{"v2/pkg/filesystem/...", transitive, "v2/pkg/... !v2/pkg/filesystem/...", separate},
	{"v2/pkg/iscsi/...", transitive, "v2/pkg/... !v2/pkg/iscsi/...", separate},
	{"v2/pkg/smb/...", transitive, "v2/pkg/... !v2/pkg/smb/... !v2/pkg/filesystem/...", separate + "; the published constructor of smb takes a filesystem"},
	{"v2/pkg/system/...", transitive, "v2/pkg/... !v2/pkg/system/...", separate},
	{"v2/pkg/volume/...", transitive, "v2/pkg/... !v2/pkg/volume/...", separate},
	{"v2/pkg/winsim/... v2/pkg/hosttest/...", transitiveOnLinux, windowsAPI, "driver authors test on Linux"},
	{"v2/cmd/pkg/daemon/grpcapi", direct, "v2/internal/win/... !v2/internal/win/winerr v2/pkg/*/hostapi", "adapters translate; they decide nothing"},
	{"v2/internal/host/... v2/pkg/*/hostapi", direct, "v2/internal/win/winapi v2/internal/win/cim v2/internal/win/winlayout", "host logic speaks to the machine through the seam only"},
	{"v2/internal/win v2/internal/win/winlayout/... v2/internal/win/winpath/...", direct, windowsAPI + " v2/internal/win/winapi v2/internal/win/cim v2/internal/win/local", "the seam, the codecs and the grammar of paths know no system call"},
	{"v2/cmd/csi-proxy", transitive, "v2/pkg/winsim/... v2/pkg/hosttest/...", "the daemon never contains the emulator"},
	{"v2/cmd/csi-proxy v2/cmd/pkg/daemon", transitive, "v2/cmd/pkg/serve/...", "the control service of the emulator never exists in the daemon"},
	{"v2/... !v2/cmd/csi-proxy* !v2/cmd/pkg/daemon/metrics", transitive, "github.com/prometheus/... v2/cmd/pkg/daemon/metrics", "only the programs have metrics; tests of drivers do without"},
	{anyOfUs + " !v2/internal/win/cim !v2/internal/win/winapi !v2/internal/win/local !v2/cmd/pkg/daemon/pipe !v2/cmd/pkg/daemon/service !v2/cmd/pkg/ctl/doctor !v2/cmd/pkg/ctl/scm !v2/pkg/winsim/internal/claim !v2/cmd/csi-proxy* !client/internal/dial", direct, windowsAPI, audit},
	{anyOfUs + " !v2/internal/win/cim !v2/internal/win/winapi !v2/internal/win/local !v2/cmd/pkg/daemon/pipe !v2/cmd/pkg/ctl/scm !v2/cmd/csi-proxy* !client/api/... !client/extension/... !client/internal/dial", direct, "unsafe", audit + "; protoc-gen-go's code uses it too"},
	{"client/...", transitive, "v2/... k8s.io/klog/... github.com/prometheus/...", "drivers vendor the client, and nothing of ours with it"},
	{anyOfUs, transitive, "github.com/microsoft/wmi/...", "its init function panics where WMI is missing (csi-proxy#411)"},
	{anyOfUs, direct, "github.com/pkg/errors io/ioutil", "the standard library has it"},
	{anyOfUs + " !v2/test/... !v2/pkg/utils", direct, "os/exec", "no PowerShell, nor any other program, at run time"},
	{anyOfUs + " !v2/pkg/utils", transitive, "v2/pkg/utils", "it runs PowerShell, and exists for released drivers only"},
	{anyOfUs + " !v2/cmd/csi-proxyctl/... !v2/cmd/pkg/ctl/...", transitive, "github.com/spf13/... golang.org/x/term/... charm.land/... github.com/charmbracelet/... v2/cmd/pkg/ctl/...", "drivers and the daemon do without what csi-proxyctl needs"},
	{anyOfUs + " !v2/cmd/pkg/ctl/live", direct, "charm.land/... github.com/charmbracelet/...", "only the live view draws on the whole terminal"},
	{"v2/cmd/csi-proxyctl/... v2/cmd/pkg/ctl/...", transitive, "v2/pkg/... v2/cmd/pkg/daemon v2/cmd/pkg/daemon/server v2/cmd/pkg/daemon/grpcapi k8s.io/klog/...", "csi-proxyctl is a client: it knows what the API reports"},
}

func TestImports(t *testing.T) {
	for _, goos := range []string{"linux", "windows"} {
		t.Run(goos, func(t *testing.T) {
			g := load(t, goos)
			for _, r := range rules {
				if r.reach == transitiveOnLinux && goos == "windows" {
					continue
				}
				for _, violation := range r.check(g) {
					t.Error(violation)
				}
			}
		})
	}
}

// graph is what each package imports.
type graph map[string][]string

// load asks the go command for the imports of our modules, and of all that they need.
// Imports of tests do not count.
func load(t *testing.T, goos string) graph {
	t.Helper()
	g := graph{}
	for _, module := range []string{"client", "v2", "v2/cmd", "v2/test"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", "./...")
		cmd.Dir = filepath.Join(root, module)
		cmd.Env = append(os.Environ(), "GOOS="+goos, "GOWORK=off")
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		for decoder := json.NewDecoder(out); ; {
			var p struct {
				ImportPath string
				Imports    []string
			}
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			for i, path := range p.Imports {
				p.Imports[i] = shorten(path)
			}
			g[shorten(p.ImportPath)] = p.Imports
		}
		if err := cmd.Wait(); err != nil {
			t.Fatalf("list the packages in %s: %v", module, err)
		}
	}
	return g
}

// shorten makes the path of a package of ours the one that rules use.
func shorten(importPath string) string {
	return strings.TrimPrefix(importPath, "github.com/kubernetes-csi/csi-proxy/")
}

// check returns a sentence for each import that breaks the rule. A rule about packages
// that do not exist is broken too: after a renaming nothing would ever break it.
func (r rule) check(g graph) []string {
	packages := slices.DeleteFunc(slices.Sorted(maps.Keys(g)), func(name string) bool { return !matches(r.packages, name) })
	if len(packages) == 0 {
		return []string{fmt.Sprintf("the rule about %s is about no package", r.packages)}
	}
	var violations []string
	for _, name := range packages {
		for _, chain := range r.find(g, name) {
			violations = append(violations, fmt.Sprintf("%s must not import %s: %s\n\t%s",
				name, chain[len(chain)-1], r.why, strings.Join(chain, " imports ")))
		}
	}
	return violations
}

// find returns a shortest chain of imports from a package to each forbidden one that can
// be reached without passing another.
func (r rule) find(g graph, name string) (chains [][]string) {
	seen := map[string]bool{name: true}
	for queue := [][]string{{name}}; len(queue) > 0; queue = queue[1:] {
		chain := queue[0]
		for _, imported := range g[chain[len(chain)-1]] {
			if seen[imported] {
				continue
			}
			seen[imported] = true
			longer := append(slices.Clip(chain), imported)
			switch {
			case matches(r.forbidden, imported):
				chains = append(chains, longer)
			case r.reach != direct:
				queue = append(queue, longer)
			}
		}
	}
	return chains
}

// matches reports whether a list of patterns contains a package; the last one that
// speaks of the package decides.
func matches(patterns, name string) bool {
	in := false
	for pattern := range strings.FieldsSeq(patterns) {
		pattern, out := strings.CutPrefix(pattern, "!")
		if matchOne(pattern, name) {
			in = !out
		}
	}
	return in
}

func matchOne(pattern, name string) bool {
	pattern, below := strings.CutSuffix(pattern, "/...")
	if below { // as many parts of the name as the pattern has
		parts := strings.Split(name, "/")
		name = path.Join(parts[:min(len(parts), 1+strings.Count(pattern, "/"))]...)
	}
	matched, _ := path.Match(pattern, name)
	return matched
}
