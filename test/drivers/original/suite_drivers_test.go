//go:build drivers

package original

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/stretchr/testify/require" // the suites import it, so that go.mod must have it

	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/report"
)

// TestSuites runs the suites, and compares the results with expected.txt.
func TestSuites(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "bin", "drivers", "original")
	suites := t.TempDir()
	if err := writeModule(t.Context(), suites, root); err != nil {
		t.Fatal(err)
	}
	expected, err := os.ReadFile("expected.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := parseExpected(string(expected))
	if err != nil {
		t.Fatal(err)
	}
	tables, ran := newTables(), 0
	for _, s := range Suites {
		t.Run(s.Name, func(t *testing.T) {
			module := filepath.Join(dir, s.Module.Version)
			if err := s.Module.Copy(t.Context(), module); err != nil {
				t.Fatalf("%v\nThe module is neither in the module cache nor on the proxy: see go env GOPROXY.", err)
			}
			results, err := s.Run(t.Context(), root, suites, module)
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range s.judge(results, reasons) {
				t.Error(problem)
			}
			tables.add(s, results, reasons)
			ran++
		})
	}
	t.Logf("\n%s", tables)
	if t.Failed() || ran < len(Suites) { // the flag -run can leave some out
		return
	}
	if err := report.Write(root, "original", tables.String()); err != nil {
		t.Error(err)
	}
}
