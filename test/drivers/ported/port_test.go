package ported

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(ports()) {
		t.Errorf("%d directories for %d ports", len(entries), len(ports()))
	}
	for _, p := range ports() {
		files, err := p.files(root)
		if err != nil {
			t.Fatal(err)
		}
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

func TestWriteSums(t *testing.T) {
	dir := t.TempDir()
	a, b, to := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "to")
	for name, content := range map[string]string{a: "y\nx\n", b: "x\nz\n"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(to, []string{a, b}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(to); string(got) != "x\ny\nz\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
