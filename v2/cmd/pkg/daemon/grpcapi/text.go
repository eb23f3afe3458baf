package grpcapi

import (
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
)

// lineText escapes unprintable characters, so that the text fits one line. Link targets and file
// names are not trusted: they could add lines to a log or reverse its reading direction.
func lineText(text string) string { return printable.Text(text) }

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
