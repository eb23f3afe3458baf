package grpcapi

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineText makes text fit for a message in one line. Some of it comes from strangers: what a
// link leads to, names of files. They could write lines of their own into a log, or turn the
// direction in which it reads.
func lineText(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			fmt.Fprintf(&b, "<U+%04X>", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r != utf8.RuneError && !unicode.IsPrint(r) }

// wireText makes text fit for a protobuf string, which must be UTF-8. Serial
// numbers and ids are bytes that a device made up; one that is not UTF-8 would
// otherwise fail the whole response, for every disk in it.
func wireText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// quote makes a value from a request fit for an error: quoted, and cut off where
// it only would fill the log.
func quote(value string) string {
	const limit = 64
	if len(value) > limit {
		return fmt.Sprintf("%q...", value[:limit])
	}
	return fmt.Sprintf("%q", value)
}
