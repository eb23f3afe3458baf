package main

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
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
	built := build{"v9.8.7", "1f94e68", time.Date(2026, 11, 15, 9, 0, 0, 0, time.FixedZone("", 3600))}
	var first [2][]byte
	for round := range 2 {
		if err := built.write(dir); err != nil {
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
			for _, value := range []string{"v9.8.7", "CSI Proxy", "csi-proxy.exe", "1f94e68 2026-11-15T08:00:00Z"} {
				if !bytes.Contains(text, wide(value)) {
					t.Errorf("%s: %q is missing", want.name, value)
				}
			}
			if !bytes.Contains(text, fileDate(built.date)) {
				t.Errorf("%s: it is not of %v", want.name, built.date)
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
	if err := built.write(t.TempDir()); err == nil {
		t.Error("a program without a description got a resource")
	}
}

func TestComment(t *testing.T) {
	for want, b := range map[string]build{
		"":                             {},
		"1f94e68":                      {commit: "1f94e68"},
		"2026-11-15T08:00:00Z":         {date: time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)},
		"1f94e68 2026-11-15T08:00:00Z": {commit: "1f94e68", date: time.Date(2026, 11, 15, 8, 0, 0, 0, time.UTC)},
	} {
		if got := b.comment(); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}

// fileDate returns a time as the fixed part of a version resource has it: a FILETIME, which counts
// tenths of a microsecond since 1601, with its upper half first.
func fileDate(date time.Time) []byte {
	const unixEpoch = 116444736000000000
	ticks := uint64(date.Unix())*10_000_000 + unixEpoch
	out := binary.LittleEndian.AppendUint32(nil, uint32(ticks>>32))
	return binary.LittleEndian.AppendUint32(out, uint32(ticks&0xffffffff))
}

// wide returns a text as Windows stores it.
func wide(text string) (out []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}
