//go:build linux && wine

package suite

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

// TestSim runs csi-proxy-sim.exe with whole lives of volumes, and the conformance suite of all
// groups over the emulated node on named pipes, with the clients of all versions. The suite
// pulls disks and lets servers hang, for which it needs the node in its own process.
func TestSim(t *testing.T) {
	p := open(t)
	install(t, p, "csi-proxy-sim.exe", "csi-proxyctl.exe")
	compile(t, p, "./v2/cmd/pkg/serve", "./v2/test/wine/daemon")
	interrupt(t, p, `C:\csi-proxy-sim.exe`)
	demo(t, p)
	units := unitsWithExceptions(t)
	served := units[slices.IndexFunc(units, func(u unit) bool { return u.dir == "v2/cmd/pkg/serve" })]
	run(t, p, `C:\`, nil, "serve.test.exe", "-test.skip="+served.skipped())
}

// demo runs what `make demo` does.
func demo(t *testing.T, p *machine) {
	t.Helper()
	goTool(t, "build", "-buildvcs=false", "-tags="+prefix.Tags, "-o", p.Path(binaries)+"/", "./v2/test/demo")
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	if output, err := p.Run(ctx, binaries+`\demo.exe`, "-bin", `C:\`); err != nil {
		t.Errorf("the demo: %v", err) // which contains the output
	} else {
		lines := strings.Split(strings.TrimSpace(output), "\n")
		t.Logf("the demo ends with: %s", lines[len(lines)-1])
	}
}
