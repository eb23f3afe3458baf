package grpcapi

import (
	"fmt"
	"strings"
)

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
