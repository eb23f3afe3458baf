//go:build unix

package command_test

import (
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/endpoint"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestReadOnly_OlderServer: a server without our service, such as the original, answers
// Unimplemented, and diskpart can do the same.
func TestReadOnly_OlderServer(t *testing.T) {
	dir := serve.SocketDir(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", endpoint.Node{Dir: dir}.Path(endpoint.Name{Group: "disk", Version: "v1"}))
	require.NoError(t, err)
	server, done := grpc.NewServer(), make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-done })
	for args, want := range map[string]string{
		"disk writable 3":        "make disk 3 writable: this server cannot; upgrade csi-proxy, or run diskpart with 'select disk 3' and 'attributes disk clear readonly' (Unimplemented)\n",
		"disk read-only 3 --yes": "make disk 3 read-only: this server cannot; upgrade csi-proxy, or run diskpart with 'select disk 3' and 'attributes disk set readonly' (Unimplemented)\n",
	} {
		r := run(t.Context(), dir, "", strings.Fields(args)...)
		if r.code != command.ExitFailure || r.err != "csi-proxyctl: "+want || r.out != "" {
			t.Errorf("%s: got %+v, want %s", args, r, want)
		}
	}
}
