package serve_test

import (
	"testing"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsclient "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The first test of a driver that calls the daemon.
func TestClient(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	serve.Start(t, node) // sets CSI_PROXY_SOCKET_DIR, until the end of the test
	files, err := fsclient.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	_, err = files.Mkdir(t.Context(), &filesystemv1.MkdirRequest{Path: `C:\var\lib\kubelet\pods\1`})
	if err != nil || !node.Exists(`C:\var\lib\kubelet\pods\1`) {
		t.Errorf("there is no directory: %v", err)
	}
}
