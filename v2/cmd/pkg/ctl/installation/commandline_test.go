package installation

import (
	"slices"
	"testing"
)

// TestFields has results of CommandLineToArgvW.
func TestFields(t *testing.T) {
	for line, want := range map[string][]string{
		``:                          nil,
		`  a  b `:                   {"a", "b"},
		`"a b" c`:                   {"a b", "c"},
		`a"b c"d`:                   {"ab cd"},
		`""`:                        {""},
		`a\b\\c`:                    {`a\b\\c`},
		`"C:\my dir\\" x`:           {`C:\my dir\`, "x"},
		`a\"b`:                      {`a"b`},
		`a\\\"b c`:                  {`a\"b`, "c"},
		`"a""b"`:                    {`a"b`},
		"a\tb":                      {"a", "b"},
		`trailing\`:                 {`trailing\`},
		`"never closed`:             {"never closed"},
		`-x="C:\Program Files\y" z`: {`-x=C:\Program Files\y`, "z"},
	} {
		if got := fields(line); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// FuzzQuote: fields is the inverse of quote.
func FuzzQuote(f *testing.F) {
	f.Add(`C:\my dir\`, `"`)
	f.Fuzz(func(t *testing.T, first, second string) {
		want := []string{first, second}
		if got := fields(quote(want)); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q, of %s", got, want, quote(want))
		}
	})
}
