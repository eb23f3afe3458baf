package grpcapi

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// lineText escapes unprintable characters, so that the text fits one line. Link targets and file
// names are not trusted: they could add lines to a log or reverse its reading direction.
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

// wireText makes text valid for a protobuf string, which must be UTF-8. Serial numbers
// and ids are bytes from a device; a single invalid one would fail the response for all
// disks.
func wireText(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// quote quotes a value from a request for an error, and cuts off a long one.
func quote(value string) string {
	const limit = 64
	if len(value) > limit {
		return fmt.Sprintf("%q...", value[:limit])
	}
	return fmt.Sprintf("%q", value)
}
