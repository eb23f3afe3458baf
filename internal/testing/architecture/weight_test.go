package architecture

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

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
