// Package driver tests a driver's code against an emulated node, directly and through
// gRPC.
package driver

import (
	"testing"

	fsv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	client "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const staging = `C:\var\lib\kubelet\plugins\csi.example.com\volume`

func TestStage(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	fs, err := filesystem.New(node.Filesystem())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: staging}); err != nil {
		t.Fatal(err)
	}

	serve.Start(t, node)
	remote, err := client.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	response, err := remote.PathExists(t.Context(), &fsv1.PathExistsRequest{Path: staging})
	if err != nil {
		t.Fatal(err)
	}
	if !response.Exists {
		t.Errorf("%s does not exist through gRPC", staging)
	}
}
