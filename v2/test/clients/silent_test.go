//go:build unix

package clients

import (
	"net"
	"testing"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestSilentConnections does what clients with the gRPC of 2020 do: each leaves a connection that is never used. They
// take no place from others, and do not delay a stop.
func TestSilentConnections(t *testing.T) {
	need(t, *sim)
	s := start(t)
	defer s.stop(t) // before the connections are closed
	for i := range 500 {
		silent, err := (&net.Dialer{}).DialContext(t.Context(), "unix", s.filesystem)
		require.NoError(t, err)
		t.Cleanup(func() { _ = silent.Close() })
		conn := connect(t, s.filesystem)
		answer, err := filesystemv1.NewFilesystemClient(conn).PathExists(t.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
		_ = conn.Close()
		if err != nil || !answer.Exists {
			t.Fatalf("call %d: %v, %v", i, answer, err)
		}
	}
}
