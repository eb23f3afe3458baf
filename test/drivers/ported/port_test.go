package ported

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/fetch"
)

func TestLinesOfCode(t *testing.T) {
	for source, want := range map[string]int{
		"":                                0,
		"// comment\n\npackage p\n":       1,
		"package p\n\n/* a\nb */ var x\n": 2,
		"package p\nvar x = `a\nb\n`\n":   4,
		"package p\n\nfunc f() {\n\t// c\n\n\tg() // h\n}\n": 4,
	} {
		if got := linesOfCode([]byte(source)); got != want {
			t.Errorf("%q has %d lines, want %d", source, got, want)
		}
	}
}

// TestPorts compares the ports with the files in testdata.
func TestPorts(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	if len(entries) != len(ports()) {
		t.Errorf("%d directories for %d ports", len(entries), len(ports()))
	}
	for _, p := range ports() {
		files, err := p.files(root)
		require.NoError(t, err)
		tests := 0
		for _, name := range files {
			if isTest(name) {
				tests++
			}
			// Their names must not exclude them from a system.
			if strings.HasSuffix(name, "_windows.go") || strings.HasSuffix(name, "_linux.go") {
				t.Errorf("%s: %s is for one system only", p.name, name)
			}
		}
		if tests == 0 || tests == len(files) {
			t.Errorf("%s has the files %v", p.name, files)
		}
	}
}

// TestEdited edits the files of a driver: those of the program as the port has them, and those of the
// test with questions to the emulated node.
func TestEdited(t *testing.T) {
	const source = "package p\n\nimport (\n\t\"os\"\n)\n\nvar _, err = os.Lstat(old)\n\nvar OtherOs = myos.Lstat\n"
	const asks = "package p\n\nimport (\n\t\"example.com/driver/ported/machine\"\n\t\"os\"\n)\n\n" +
		"var _, err = machine.Lstat(new)\n\nvar OtherOs = myos.Lstat\n\nvar _ = os.Args\n"
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(source), 0o600))
	for name, c := range map[string]struct {
		edits []edit
		asks  []string
		want  map[build]string
	}{
		"nothing to edit":              {want: map[build]string{program: "", test: ""}},
		"edit and question":            {[]edit{{"p.go", "(old)", "(new)"}}, []string{"os.Lstat"}, map[build]string{program: strings.ReplaceAll(source, "old", "new"), test: asks}},
		"text that is not there":       {[]edit{{"p.go", "(new)", ""}}, nil, nil},
		"text that is there two times": {[]edit{{"p.go", "Lstat", ""}}, nil, nil},
		"question that is not there":   {nil, []string{"os.Stat"}, map[build]string{program: ""}},
		"no such file":                 {[]edit{{"q.go", "", ""}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &tree{sources: dir, port: port{module: fetch.Module{Path: "example.com/driver"}, edits: c.edits}}
			if c.asks != nil {
				p.asks = map[string][]string{"p.go": c.asks}
			}
			for _, b := range []build{program, test} {
				files, err := p.edited(b)
				want, ok := c.want[b]
				if got := string(files["p.go"]); got != want || (err == nil) != ok {
					t.Errorf("%s: got %q, %v; want %q", b, got, err, want)
				}
			}
		})
	}
}

func TestWriteSums(t *testing.T) {
	dir := t.TempDir()
	a, b, to := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "to")
	for name, content := range map[string]string{a: "y\nx\n", b: "x\nz\n"} {
		require.NoError(t, os.WriteFile(name, []byte(content), 0o600))
	}
	require.NoError(t, writeSums(to, []string{a, b}))
	if got, err := os.ReadFile(to); string(got) != "x\ny\nz\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
