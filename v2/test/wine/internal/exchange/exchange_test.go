package exchange

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestLayout compares the offsets here with the structures of the driver.
func TestLayout(t *testing.T) {
	source, err := os.ReadFile("../../driver/protocol.h")
	require.NoError(t, err)
	offset := func(structure, field string) int {
		t.Helper()
		body := regexp.MustCompile(`struct ` + structure + ` \{([^}]*)\}`).FindStringSubmatch(string(source))
		if body == nil {
			t.Fatalf("the driver has no struct %s", structure)
		}
		at := 0
		for _, member := range regexp.MustCompile(`UINT(32|64) (\w+);`).FindAllStringSubmatch(body[1], -1) {
			if member[2] == field {
				return at
			}
			at += map[string]int{"32": 4, "64": 8}[member[1]]
		}
		if field == "" {
			return at
		}
		t.Fatalf("struct %s has no %s", structure, field)
		return 0
	}
	for _, c := range []struct {
		structure, field string
		want             int
	}{
		{"request", "id", requestID},
		{"request", "device", requestDevice},
		{"request", "function", requestFunction},
		{"request", "code", requestCode},
		{"request", "room", requestRoom},
		{"request", "offset", requestOffset},
		{"request", "", requestSize},
		{"reply", "", len(Reply{}.encode())},
		{"add", "", 8},
	} {
		if got := offset(c.structure, c.field); got != c.want {
			t.Errorf("%s.%s is at %d in the driver, at %d here", c.structure, c.field, got, c.want)
		}
	}
	for name, code := range map[string]uint32{"ADD": codeAdd, "EXCHANGE": codeExchange} {
		want := fmt.Sprintf("#define IOCTL_WINSIM_%s CTL_CODE(FILE_DEVICE_UNKNOWN, %#x, METHOD_BUFFERED, FILE_ANY_ACCESS)", name, code&0x3ffc>>2)
		if !strings.Contains(string(source), want) {
			t.Errorf("the driver does not say %s", want)
		}
	}
}
