package exchange

import (
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestDecodeRequest(t *testing.T) {
	b := make([]byte, requestSize)
	binary.LittleEndian.PutUint64(b[requestID:], 1)
	binary.LittleEndian.PutUint32(b[requestDevice:], 2)
	binary.LittleEndian.PutUint32(b[requestFunction:], uint32(Read))
	binary.LittleEndian.PutUint32(b[requestCode:], 4)
	binary.LittleEndian.PutUint32(b[requestRoom:], 5)
	binary.LittleEndian.PutUint64(b[requestOffset:], 6)
	got, err := decodeRequest(append(b, "data"...))
	want := Request{ID: 1, Device: 2, Function: Read, Code: 4, Room: 5, Offset: 6, Data: []byte("data")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := decodeRequest(b[:requestSize-1]); err == nil {
		t.Error("a request that is too short was read")
	}
}

func TestEncode(t *testing.T) {
	reply := Reply{ID: 0x0102, Status: 0xC0000010, Data: []byte{9}}
	if got, want := reply.encode(), []byte("\x02\x01\x00\x00\x00\x00\x00\x00\x10\x00\x00\xC0\x00\x00\x00\x00\x09"); !cmp.Equal(got, want) {
		t.Errorf("reply: % x, want % x", got, want)
	}
	device := Device{Number: 1, Type: 7, Name: "N", Links: []string{"L"}}
	got, err := device.encode()
	if want := []byte("\x01\x00\x00\x00\x07\x00\x00\x00N\x00\x00\x00L\x00\x00\x00"); err != nil || !cmp.Equal(got, want) {
		t.Errorf("device: % x, %v, want % x", got, err, want)
	}
	for _, name := range []string{"", "a\x00b"} {
		if _, err := (Device{Name: name}).encode(); err == nil {
			t.Errorf("%q was taken for a name", name)
		}
	}
}
