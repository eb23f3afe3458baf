package winpath

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// InvalidError says which rule a path breaks and where.
type InvalidError struct {
	Path      string
	Component string // the offending component, if it is one component's fault
	Rule      string
}

func (e *InvalidError) Error() string {
	if e.Component != "" {
		return fmt.Sprintf("path %s: component %s %s", Quote(e.Path), Quote(e.Component), e.Rule)
	}
	return fmt.Sprintf("path %s %s", Quote(e.Path), e.Rule)
}

// Quote makes of a caller's string something to show in errors and logs: bounded,
// on one line, in the order in which it is stored, and without an early end.
//
// Line breaks would forge log lines, controls of text direction (U+202E) show one
// name as another, and zero-width characters and foreign spaces hide why two
// names differ. All of them are written as <U+202E>, bytes that are not UTF-8 as
// <0xFF>: angle brackets cannot be part of a name on Windows. Backslashes stay
// single, unlike with %q, so that a path can be read and searched for.
func Quote(s string) string {
	const most = 300
	var b strings.Builder
	b.WriteByte('"')
	for rest := s; rest != ""; {
		if b.Len() > most {
			return fmt.Sprintf(`%s"... (%d bytes)`, b.String(), len(s))
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "<0x%02X>", rest[0])
		case r == '"' || !unicode.IsPrint(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
		default:
			b.WriteRune(r)
		}
		rest = rest[size:]
	}
	b.WriteByte('"')
	return b.String()
}
