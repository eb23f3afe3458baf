package architecture

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestSupplyChain: a tag of an action can be moved, and without a toolchain line a build takes whatever Go is there.
func TestSupplyChain(t *testing.T) {
	check := func(want int, needs *regexp.Regexp, every *regexp.Regexp, patterns ...string) {
		t.Helper()
		found := 0
		for _, pattern := range patterns {
			files, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range every.FindAllString(string(text), -1) {
					if found++; !needs.MatchString(line) {
						t.Errorf("%s: %q does not match %s", file, line, needs)
					}
				}
			}
		}
		if found < want {
			t.Errorf("%d places were checked, want at least %d", found, want)
		}
	}
	check(20, regexp.MustCompile(`@[0-9a-f]{40} # v\d`), regexp.MustCompile(`uses: .*`), ".github/workflows/*.yml")
	check(8, regexp.MustCompile(`\ntoolchain go1\.`), regexp.MustCompile(`(?s)^module .*`), "*/go.mod", "*/*/go.mod", "*/*/*/go.mod")
	check(1, regexp.MustCompile(`@sha256:[0-9a-f]{64}$`), regexp.MustCompile(`(?m)^IMAGE_BASE .*`), "Makefile")
}
