package architecture

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var update = flag.Bool("update", false, "write testdata/weight.txt")

// TestWeight: the modules that a driver gets with a package of the library are those in
// testdata/weight.txt. The mounter's and the daemon's must not be among them.
func TestWeight(t *testing.T) {
	const golden = "testdata/weight.txt"
	var text strings.Builder
	for _, goos := range []string{"linux", "windows"} {
		for group := range strings.FieldsSeq("disk filesystem iscsi node smb system volume") {
			list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./pkg/"+group)
			list.Dir, list.Env = "../../..", append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
			out, err := list.Output()
			require.NoError(t, err)
			modules := strings.Fields(string(out))
			slices.Sort(modules)
			modules = slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == "github.com/kubernetes-csi/csi-proxy/v2" })
			fmt.Fprintf(&text, "%s on %s: %s\n", group, goos, strings.Join(modules, " "))
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if text.String() != string(want) {
		t.Errorf("the modules of the library are\n%swant\n%sif that is intended, use -update", text.String(), want)
	}
}

// TestDoc_Winsim: the documentation of the emulated node names no type that only this module has.
func TestDoc_Winsim(t *testing.T) {
	doc := exec.CommandContext(t.Context(), "go", "doc", "-all", "./pkg/winsim")
	doc.Dir = "../../.."
	out, err := doc.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		if internal := regexp.MustCompile(`\b(win|winerr|winlayout|winpath|sddl|smbios|unc|claim|servicelist|local)\.[A-Z]|/internal/`).FindString(line); internal != "" {
			t.Errorf("it has %s: %s", internal, line)
		}
	}
}
