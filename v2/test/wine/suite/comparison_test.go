//go:build linux && wine

package suite

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var figures = flag.String("figures", "", "`file` for what TestComparison measures; it is skipped without")

// TestComparison measures csi-proxy.exe and a release of the original side by side. Nothing of that is in this
// repository.
func TestComparison(t *testing.T) {
	if *figures == "" {
		t.Skip("make bench asks for it")
	}
	p := open(t)
	install(t, p, "csi-proxy.exe")
	compile(t, p, "./v2/test/wine/daemon")
	goTool(t, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.Path(`C:\idle.exe`), "./v2/test/wine/idle")
	compileOriginal(t, p)
	run(t, p, `C:\`, nil, daemonTests, "-test.run=^TestComparison$", `-original=C:\original.exe`, `-idle=C:\idle.exe`, `-figures=C:\figures.txt`)
	measured, err := os.ReadFile(p.Path(`C:\figures.txt`))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*figures, measured, 0o644))
}

// compileOriginal installs a release of the original. Its module is required by one in a temporary directory, and the go
// command verifies the checksums.
func compileOriginal(t *testing.T, p *machine) {
	t.Helper()
	dir := t.TempDir()
	const module, version = "github.com/kubernetes-csi/csi-proxy", "@v1.3.0"
	const program = module + "/cmd/csi-proxy"
	for _, args := range [][]string{
		{"mod", "init", "original"},
		{"get", program + version, module + "/client" + version}, // it was released with the client of its own tree
		{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.Path(`C:\original.exe`), program},
	} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir = dir
		command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, output)
		}
	}
}
