package ported

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
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
