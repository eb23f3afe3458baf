package winpath

import (
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"testing"
	"unicode/utf16"
)

// TestFold: TestFold_IsWindowsTable has every unit; here are texts, and what is outside of the table.
func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		`C:\var`:          `C:\VAR`,
		"äöüÿ":            "ÄÖÜŸ",
		"ⱥ":               "Ⱥ",        // three bytes and two
		"ıſ\u212a":        "ıſ\u212a", // I, S and K in Unicode
		"𐐨":               "𐐨",        // Deseret, beyond 16 bits
		"\xff\xe4a\ufffd": "\xff\xe4A\ufffd",
	} {
		if got := Fold(in); got != want {
			t.Errorf("Fold(%q) = %q, want %q", in, got, want)
		}
		if got := string(AppendFold([]byte("x"), in)); got != "x"+want {
			t.Errorf("AppendFold(%q) = %q, want x%q", in, got, want)
		}
	}
}

// TestFold_IsWindowsTable compares our table, as NTFS stores it, with the $UpCase of a volume that Windows 8
// has formatted. Its MD5 is from the sources of ntfs-3g (libntfs-3g/unistr.c).
func TestFold_IsWindowsTable(t *testing.T) {
	var table []byte
	for unit := range 1 << 16 {
		table = binary.LittleEndian.AppendUint16(table, upcaseUnit(uint16(unit)))
	}
	if got := fmt.Sprintf("%x", md5.Sum(table)); got != "7ff498a44e45e77374cc7c962b1b92f2" {
		t.Errorf("MD5 %s, want that of the table of Windows 8", got)
	}
}

// upcaseUnit is what Fold does to one UTF-16 unit.
func upcaseUnit(unit uint16) uint16 {
	if utf16.IsSurrogate(rune(unit)) {
		return unit
	}
	return uint16([]rune(Fold(string(rune(unit))))[0])
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true},
		{"", "a", false},
		{"kubelet", "KUBELET", true},
		{"kubelet", "kubelet ", false},
		{"ärger", "ÄRGER", true},
		{"aä", "AÄ", true},
		{"δίσκος", "δίσκοσ", false},
		{"ⱥ", "Ⱥ", true}, // three bytes and two
		{"kelvin", "\u212aelvin", false},
		{"ä", "a\u0308", false},
		{"\xff", "\xfe", false},
		{"\xff", "\ufffd", false},
		{"\xff", "\xff", true},
		{"\xc3", "ã", false},
	} {
		if Equal(c.a, c.b) != c.want || Equal(c.b, c.a) != c.want {
			t.Errorf("Equal(%q, %q) = %v and %v, want %v", c.a, c.b, Equal(c.a, c.b), Equal(c.b, c.a), c.want)
		}
	}
}

// Keys of maps and locks are folded names. The result is all that a short one costs.
func TestFold_AllocatesOnce(t *testing.T) {
	for _, name := range []string{"files.example.com", kubelet, `ärger`} {
		if n := testing.AllocsPerRun(100, func() { folded = Fold(name) }); n != 1 {
			t.Errorf("Fold(%q) allocates %v times", name, n)
		}
	}
}

var folded string // keeps the result on the heap
