package winpath

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath/winpathtest"
)

// FuzzClean checks what every caller relies on: an accepted path is stable under Clean,
// has none of the special parts, and comes apart and together again.
func FuzzClean(f *testing.F) {
	for _, c := range winpathtest.Corpus() {
		if len(c.Path) < 1000 {
			f.Add(c.Path)
		}
	}
	f.Fuzz(func(t *testing.T, in string) {
		clean, err := Clean(in)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\r\x00\u202e") {
				t.Fatalf("Clean(%q): %q", in, err)
			}
			return
		}
		if again, err := Clean(clean); err != nil || again != clean {
			t.Fatalf("Clean(%q) = %q, but again %q, %v", in, clean, again, err)
		}
		isSeparator := func(r rune) bool { return r == '\\' }
		if !slices.EqualFunc(strings.FieldsFunc(in, isSeparator), strings.FieldsFunc(clean, isSeparator), Equal) {
			t.Fatalf("Clean(%q) = %q, another path", in, clean)
		}
		checkPlain(t, clean)
		checkParts(t, clean)
	})
}

// checkPlain repeats the rules in the most stupid way.
func checkPlain(t *testing.T, clean string) {
	t.Helper()
	if !utf8.ValidString(clean) || len(utf16.Encode([]rune(clean))) > MaxPath {
		t.Fatalf("%q is not fit for Windows", clean)
	}
	if clean[0] < 'A' || clean[0] > 'Z' || clean[1:3] != `:\` || strings.ContainsAny(clean[2:], "/:*?\"<>|\x00\n") ||
		strings.Contains(clean, "..") || strings.Contains(clean, `\\`) {
		t.Fatalf("%q is not plain", clean)
	}
	if len(clean) == 3 {
		return
	}
	for name := range strings.SplitSeq(clean[3:], `\`) {
		if name == "" || name != strings.TrimRight(name, ". ") || len(utf16.Encode([]rune(name))) > 255 {
			t.Fatalf("%q has the component %q", clean, name)
		}
		stem := strings.ToUpper(strings.TrimRight(strings.Split(name, ".")[0], " "))
		if slices.Contains([]string{"CON", "PRN", "AUX", "NUL", "COM1", "LPT9", "COM²", "CONIN$", "KUBELE~1", "~0"}, stem) &&
			!strings.Contains(name, ".") {
			t.Fatalf("%q has the component %q", clean, name)
		}
	}
}

func checkParts(t *testing.T, clean string) {
	t.Helper()
	rebuilt := clean[:3]
	if parent, ok := Parent(rebuilt); ok {
		t.Fatalf("the root has the parent %q", parent)
	}
	for _, name := range Components(clean) {
		parent := rebuilt
		rebuilt = Join(parent, name)
		if got, ok := Parent(rebuilt); !ok || got != parent {
			t.Fatalf("Parent(Join(%q, %q)) = %q, %v", parent, name, got, ok)
		}
		if !Contains(parent, rebuilt) || Contains(rebuilt, parent) {
			t.Fatalf("%q and %q contain each other wrongly", parent, rebuilt)
		}
	}
	if rebuilt != clean || !Contains(clean, clean) || !Contains(clean[:3], clean) {
		t.Fatalf("%q comes together as %q", clean, rebuilt)
	}
	if Contains(clean, clean+"x") && len(clean) > 3 {
		t.Fatalf("%q contains a sibling", clean)
	}
}

// FuzzEqual compares with Windows' way to do it: UTF-16 unit by UTF-16 unit.
func FuzzEqual(f *testing.F) {
	f.Add("kubelet", "KUBELET", "Kubelet")
	f.Add("ς", "σ", "Σ")
	f.Add("ⱥ", "Ⱥ", "\u212a")
	f.Add("\xff", "\xfe", "\ufffd")
	f.Add("𐐀", "𐐨", "ı")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		equal := Equal(a, b)
		if equal != Equal(b, a) || !Equal(a, a) {
			t.Fatalf("Equal(%q, %q) is not symmetric or not reflexive", a, b)
		}
		if equal && Equal(b, c) != Equal(a, c) {
			t.Fatalf("Equal(%q, %q, %q) is not transitive", a, b, c)
		}
		if equal != (Fold(a) == Fold(b)) || Fold(Fold(a)) != Fold(a) || !Equal(a, Fold(a)) {
			t.Fatalf("Equal(%q, %q) and Fold disagree", a, b)
		}
		if utf8.ValidString(a) && utf8.ValidString(b) && equal != slices.Equal(unitsUpper(a), unitsUpper(b)) {
			t.Fatalf("Equal(%q, %q) = %v, but not by units", a, b, equal)
		}
	})
}

func unitsUpper(s string) []uint16 {
	units := utf16.Encode([]rune(s))
	for i, unit := range units {
		units[i] = upcaseUnit(unit)
	}
	return units
}

// FuzzContains compares with components in lists.
func FuzzContains(f *testing.F) {
	f.Add(kubelet, kubelet+`\x`)
	f.Add(kubelet, kubelet+`-evil`)
	f.Add(`C:\`, `c:\x`)
	f.Add(`C:\Ⱥ`, `C:\ⱥ\x`)
	f.Add(`C:\x`, `C:\X y`)
	f.Fuzz(func(t *testing.T, dir, path string) {
		dir, dirErr := Clean(dir)
		path, pathErr := Clean(path)
		if dirErr != nil || pathErr != nil {
			return
		}
		above, below := Components(dir), Components(path)
		want := dir[0] == path[0] && len(above) <= len(below) && slices.EqualFunc(above, below[:min(len(above), len(below))],
			func(a, b string) bool { return slices.Equal(unitsUpper(a), unitsUpper(b)) })
		if got := Contains(dir, path); got != want {
			t.Fatalf("Contains(%q, %q) = %v, want %v", dir, path, got, want)
		}
		if mutual := Contains(dir, path) && Contains(path, dir); mutual != Equal(dir, path) {
			t.Fatalf("%q and %q contain each other: %v", dir, path, mutual)
		}
	})
}

// FuzzSameTarget checks that no prefix makes two targets of one, or one of two.
func FuzzSameTarget(f *testing.F) {
	for _, target := range []string{kubelet, `C:\`, `C:`, `\\server\share\`, `\\?\Volume{x}\`, `\??\UNC\a\b`, `\\?\\`, `\`, ``, `a\`} {
		f.Add(target, kubelet)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if !SameTarget(a, a) || SameTarget(a, b) != SameTarget(b, a) {
			t.Fatalf("SameTarget(%q, %q) is not symmetric or not reflexive", a, b)
		}
		if Equal(a, b) && !SameTarget(a, b) {
			t.Fatalf("%q and %q are equal, but not the same target", a, b)
		}
		cleanA, errA := Clean(a)
		cleanB, errB := Clean(b)
		if errA != nil {
			return
		}
		for _, spelling := range []string{cleanA, Long(cleanA), `\??\` + cleanA, cleanA + `\`, Fold(cleanA)} {
			if !SameTarget(cleanA, spelling) {
				t.Fatalf("%q and %q are not the same target", cleanA, spelling)
			}
			if errB == nil && SameTarget(spelling, cleanB) != Equal(cleanA, cleanB) {
				t.Fatalf("SameTarget(%q, %q) is wrong", spelling, cleanB)
			}
		}
	})
}
