//go:build linux && wine

package suite

import (
	"archive/zip"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

var dist = flag.String("release", "", "the `directory` of a release, for TestReadme")

// TestReadme runs what README.md says to those who install the service on a node, with the files of a release.
func TestReadme(t *testing.T) {
	if *dist == "" {
		t.Skip("no release; make test-adopt makes one")
	}
	readme, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	require.NoError(t, err)
	p := open(t)
	_, text, _ := strings.Cut(string(readme), "\n## For operators\n")
	text, _, _ = strings.Cut(text, "\nIn a cluster")
	word, dir, output := regexp.MustCompile(`"[^"]*"|\S+`), "", ""
	ctl := func(args ...string) string {
		process, err := p.Launch(t.Context(), prefix.Program{Path: dir + `\csi-proxyctl.exe`, Args: args, Dir: dir})
		require.NoError(t, err)
		if err := process.Wait(); err != nil {
			t.Fatalf("csi-proxyctl %q: %v", args, err)
		}
		return process.Output()
	}
	for line := range strings.Lines(text) {
		line, isCommand := strings.CutPrefix(line, "    ")
		if !isCommand {
			continue
		}
		words := word.FindAllString(line, -1)
		for i := range words {
			words[i] = strings.Trim(words[i], `"`)
		}
		switch words[0] {
		case "tar": // which Wine does not have
			archive, err := zip.OpenReader(filepath.Join(*dist, words[2]))
			require.NoError(t, err)
			require.NoError(t, os.CopyFS(p.Path(words[4]), archive))
			require.NoError(t, archive.Close())
		case "cd":
			dir = words[1]
		case `.\csi-proxyctl.exe`:
			if words[2] == "install" {
				words = append(words, "--force") // under Wine every file belongs to the user
			}
			output += ctl(words[1:]...)
		default:
			t.Fatalf("README.md has %q", line)
		}
	}
	output += ctl("service", "status") + ctl("service", "stop") + ctl("service", "uninstall")
	for _, want := range []string{"csi-proxy: installed", "csi-proxy: running", "  23  ", dir + `\csi-proxy.exe" -windows-service`, "csi-proxy: removed"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing:\n%s", want, output)
		}
	}
}
