package winpath

import (
	"math/bits"
	"testing"
	"unicode/utf16"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		`C:\var`:          `C:\VAR`,
		"äöüÿ":            "ÄÖÜŸ",
		"ёлка":            "ЁЛКА",
		"σς":              "ΣΣ",
		"ǆ":               "Ǆ",
		"ⱥ":               "Ⱥ",
		"ⴀ":               "Ⴀ", // ancient Georgian
		"ｋ":               "Ｋ",
		"ı":               "ı", // I in Unicode
		"İ":               "İ",
		"ſ":               "ſ",      // S in Unicode
		"\u212a":          "\u212a", // the Kelvin sign
		"µ":               "µ",      // the micro sign, Μ in Unicode
		"ß":               "ß",
		"ẞ":               "ẞ",
		"ŉ":               "ŉ",
		"ǅ":               "ǅ", // a title case
		"ϐ":               "ϐ",
		"ა":               "ა", // Georgian, cased since Unicode 11
		"ꭰ":               "ꭰ", // Cherokee, cased since Unicode 8
		"ɐ":               "ɐ",
		"𐐨":               "𐐨", // Deseret, beyond 16 bits
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

// Our table is the one that Microsoft documents: compressed as the specification of exFAT
// does it, it has the checksum that exFAT volumes carry.
// https://learn.microsoft.com/windows/win32/fileio/exfat-specification#725-up-case-table
func TestFold_IsWindowsTable(t *testing.T) {
	var table [1 << 16]uint16
	for unit := range table {
		table[unit] = upcaseUnit(uint16(unit))
	}
	// Microsoft has these pairs the other way round, which makes no difference to whether
	// names are equal.
	for lower, upper := range map[uint16]uint16{0x2c65: 0x023a, 0x2c66: 0x023e, 0x1fc3: 0x1fcc, 0x1ff3: 0x1ffc} {
		if table[lower] != upper {
			t.Errorf("%04X folds to %04X, want %04X", lower, table[lower], upper)
		}
		table[lower], table[upper] = lower, lower
	}
	// Runs of characters that stay are written as 0xFFFF and a count, but only these.
	runs := map[int]int{0x0587: 0x17f6, 0x2185: 0x034b, 0x24ea: 0x0746, 0x2d26: 0xd21b}
	checksum, size := uint32(0), 0
	write := func(value uint16) {
		for _, b := range []byte{byte(value), byte(value >> 8)} {
			checksum = bits.RotateLeft32(checksum, -1) + uint32(b)
			size++
		}
	}
	for unit := 0; unit < len(table); {
		count := runs[unit]
		if count == 0 {
			write(table[unit])
			unit++
			continue
		}
		write(0xffff)
		write(uint16(count))
		for end := unit + count; unit < end; unit++ {
			if table[unit] != uint16(unit) {
				t.Errorf("%04X folds to %04X", unit, table[unit])
			}
		}
	}
	if size != 5836 || checksum != 0xe619d30d {
		t.Errorf("the table has %d bytes and the checksum %08x, want 5836 and e619d30d", size, checksum)
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
