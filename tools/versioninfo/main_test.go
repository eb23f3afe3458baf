package main

import (
	"bytes"
	"debug/pe"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf16"
)

func TestNumbers(t *testing.T) {
	for version, want := range map[string][4]uint16{
		"v2.10.3":           {2, 10, 3, 0},
		"v2.1.0-rc.1":       {2, 1, 0, 0},
		"2.0.1+build":       {2, 0, 1, 0},
		"v70000.1.1":        {},
		"1f94e68-dirty":     {},
		"v2.0.0-4-g1f94e68": {2, 0, 0, 0},
	} {
		if got := numbers(version); got != want {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

// TestWrite: an object for each architecture, with the version in it, and the same bytes each time.
func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "csi-proxy")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var first [2][]byte
	for round := range 2 {
		if err := write(dir, "v9.8.7", "1f94e68"); err != nil {
			t.Fatal(err)
		}
		for i, want := range []struct {
			name    string
			machine uint16
		}{{"version_windows_amd64.syso", pe.IMAGE_FILE_MACHINE_AMD64}, {"version_windows_arm64.syso", pe.IMAGE_FILE_MACHINE_ARM64}} {
			text, err := os.ReadFile(filepath.Join(dir, want.name))
			if err != nil {
				t.Fatal(err)
			}
			object, err := pe.NewFile(bytes.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if object.Machine != want.machine || len(object.Sections) == 0 || object.Sections[0].Name != ".rsrc" {
				t.Errorf("%s: machine %#x, sections %v", want.name, object.Machine, object.Sections)
			}
			for _, value := range []string{"v9.8.7", "CSI Proxy", "csi-proxy.exe", "1f94e68"} {
				if !bytes.Contains(text, wide(value)) {
					t.Errorf("%s: %q is missing", want.name, value)
				}
			}
			if round == 0 {
				first[i] = text
				if err := os.Remove(filepath.Join(dir, want.name)); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(first[i], text) {
				t.Errorf("%s is another one the second time", want.name)
			}
		}
	}
	if err := write(t.TempDir(), "v9.8.7", ""); err == nil {
		t.Error("a program that nobody has described has got a resource")
	}
}

// wide returns a text as Windows stores it.
func wide(text string) (out []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}
