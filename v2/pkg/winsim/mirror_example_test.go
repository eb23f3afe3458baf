//go:build unix

package winsim_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver that opens the node's files itself finds them in a real directory.
func ExampleNode_Mirror() {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "node")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	stop, err := node.Mirror(dir, nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer stop()
	kubelet := filepath.Join(dir, "C", "var", "lib", "kubelet")

	// What the driver does by itself ...
	target := filepath.Join(kubelet, "pods", "web", "volumes", "pv")
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		log.Print(err)
		return
	}
	// ... what it leaves to CSI Proxy ...
	fs, err := filesystem.New(node.Filesystem())
	if err != nil {
		log.Print(err)
		return
	}
	_, err = fs.CreateSymlink(context.Background(), &filesystem.CreateSymlinkRequest{
		SourcePath: `C:\var\lib\kubelet\plugins`,
		TargetPath: `C:\var\lib\kubelet\pods\web\volumes\pv`,
	})
	if err != nil {
		log.Print(err)
		return
	}
	// ... and what it sees of that.
	fmt.Println(os.Readlink(target))
	// Output: ../../../plugins <nil>
}
