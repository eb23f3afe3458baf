package printable_test

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "",
		"plain ü 盤 😀":          "plain ü 盤 😀",
		"a\nb":                 "a<U+000A>b",
		"\u009b31m":            "<U+009B>31m",
		"x\u202ey":             "x<U+202E>y",
		"\U000e0001":           "<U+E0001>",
		"no UTF-8: \xff\u2028": "no UTF-8: \uFFFD<U+2028>",
	} {
		if got := printable.Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	keepLines := func(_ int, r rune) bool { return r == '\n' }
	if got := printable.Text("a\nb\r", keepLines); got != "a\nb<U+000D>" {
		t.Errorf("got %q", got)
	}
}

// FuzzJSON: the value stays the same, and nothing unprintable is left but line breaks.
func FuzzJSON(f *testing.F) {
	f.Add("plain")
	f.Add("\x7f\u009b2J\u202e\u2066\u200f\U000e0001\U0001f600")
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) {
			return // json.Marshal replaces it
		}
		encoded, err := json.MarshalIndent([]string{value}, "", "  ")
		require.NoError(t, err)
		escaped := printable.JSON(string(encoded))
		if i := strings.IndexFunc(escaped, func(r rune) bool { return r != '\n' && r != utf8.RuneError && !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%q has an unprintable character at %d", escaped, i)
		}
		var again []string
		if err := json.Unmarshal([]byte(escaped), &again); err != nil || again[0] != value {
			t.Fatalf("%q: got %q, %v", value, again, err)
		}
	})
}

func TestCompare(t *testing.T) {
	inOrder := []string{"", "10", "a", "share", "share1", "share2", "share2b", "share02", "share10", "share10a2", "share10a10", "share99999999999999999999", "t"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := printable.Compare(a, b); got != cmp.Compare(i, j) {
				t.Errorf("%q, %q: %d", a, b, got)
			}
		}
	}
}
