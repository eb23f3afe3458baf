package rawhttp2_test

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/rawhttp2"
)

func TestFrame(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	want := rawhttp2.Frame{Type: rawhttp2.Settings, Flags: rawhttp2.ACK, Stream: 0x7fffffff, Payload: []byte{0, 6, 0, 0, 0x40, 0}}
	go func() { _, _ = client.Write(want.Bytes()) }()
	got, err := rawhttp2.Read(server, time.Minute)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("%v, differs (-sent +read):\n%s", err, diff)
	}
	settings, err := rawhttp2.ParseSettings(got)
	if err != nil || settings[rawhttp2.MaxHeaderListSize] != 16384 {
		t.Errorf("got %v, %v", settings, err)
	}
	if _, err := rawhttp2.ParseSettings(rawhttp2.Frame{Type: rawhttp2.Ping}); err == nil {
		t.Error("a ping has settings")
	}
}

// TestLiteral has the examples of RFC 7541, appendices C.1.2 and C.2.2.
func TestLiteral(t *testing.T) {
	if got := rawhttp2.Literal("password", "secret"); !bytes.Equal(got, append([]byte("\x00\x08password\x06"), "secret"...)) {
		t.Errorf("got %q", got)
	}
	long := rawhttp2.Literal("x", strings.Repeat("y", 1337))
	if !bytes.HasPrefix(long, []byte{0, 1, 'x', 127, 0xba, 9}) { // 1337 = 127 + 58 + 9*128
		t.Errorf("got %x", long[:6])
	}
}
