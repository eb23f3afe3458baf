//go:build linux && wine

package suite

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var figures = flag.String("figures", "", "`file` for what TestComparison measures; it is skipped without")

// comparisonLimit is more than the test waits for moments in which the machine's host leaves it alone.
const comparisonLimit = 25 * time.Minute

// TestComparison measures csi-proxy.exe and a release of the original side by side. That is
// built from its module, which test/wine/original names; nothing of it is in this repository.
func TestComparison(t *testing.T) {
	if *figures == "" {
		t.Skip("make bench asks for it")
	}
	p := open(t)
	install(t, p, "csi-proxy.exe")
	compile(t, p, "./test/wine/daemon")
	goTool(t, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.Path(`C:\idle.exe`), "./test/wine/idle")
	compileOriginal(t, p)
	runWithin(t, p, comparisonLimit, `C:\`, nil, daemonTests, "-test.run=^TestComparison$", `-original=C:\original.exe`, `-idle=C:\idle.exe`, `-figures=C:\figures.txt`)
	measured, err := os.ReadFile(p.Path(`C:\figures.txt`))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(*figures, measured, 0o644))
}

// compileOriginal installs a release of the original.
func compileOriginal(t *testing.T, p *machine) {
	t.Helper()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", p.Path(`C:\original.exe`),
		"github.com/kubernetes-csi/csi-proxy/cmd/csi-proxy")
	build.Dir = filepath.Join(root(t), "test", "wine", "original")
	// It is not part of the workspace, whose client would take the place of its own.
	build.Env = append(os.Environ(), "GOWORK=off", "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the original: %v\n%s", err, output)
	}
}
