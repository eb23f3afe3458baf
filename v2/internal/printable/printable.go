// Package printable escapes text that comes from devices, file systems and clients, so that it
// cannot add lines to a log, control a terminal or reverse its reading direction. It also formats
// sizes.
package printable

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns text with each unprintable character as <U+009B>, except those that one of keep
// returns true for.
func Text(text string, keep ...func(at int, r rune) bool) string {
	return replace(text, func(b *strings.Builder, at int, r rune) {
		for _, k := range keep {
			if k(at, r) {
				b.WriteRune(r)
				return
			}
		}
		fmt.Fprintf(b, "<U+%04X>", r)
	})
}

// JSON returns a JSON text of the same value with each unprintable character of its strings as
// \u009b. The line breaks between values stay.
func JSON(text string) string {
	return replace(text, func(b *strings.Builder, _ int, r rune) {
		if r == '\n' {
			b.WriteRune(r)
			return
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(b, `\u%04x`, unit)
		}
	})
}

// replace calls write for each unprintable character. Invalid UTF-8 stays as it is.
func replace(text string, write func(b *strings.Builder, at int, r rune)) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for at, r := range text {
		if unprintable(r) {
			write(&b, at, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r != utf8.RuneError && !unicode.IsPrint(r) }

// Compare orders names as people do: share2 comes before share10.
func Compare(a, b string) int {
	for a != "" && b != "" {
		x, y := number(a), number(b)
		if x == "" || y == "" {
			if a[0] != b[0] {
				return cmp.Compare(a[0], b[0])
			}
			a, b = a[1:], b[1:]
			continue
		}
		m, n := strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
		if order := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n), cmp.Compare(len(x), len(y))); order != 0 {
			return order
		}
		a, b = a[len(x):], b[len(y):]
	}
	return cmp.Compare(len(a), len(b))
}

// number returns the digits at the beginning of a text.
func number(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}
