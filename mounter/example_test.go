package mounter_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver on a node calls mounter.New(ctx). This one works on an emulated node.
func Example() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Azure())
	if err != nil {
		panic(err)
	}
	m, err := mounter.New(ctx, emulated(node))
	if err != nil {
		panic(err)
	}
	defer m.Close()

	const (
		staging = "/var/lib/kubelet/plugins/kubernetes.io/csi/disk.example.com/1/globalmount"
		target  = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv/mount"
	)
	staged, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{LUN: "0", Adapter: "1"}})
	fmt.Println("staged disk", staged.DiskNumber, err)
	fmt.Println("published", m.Publish(ctx, staging, target))
	usage, err := m.Stats(ctx, target)
	fmt.Println("used", usage.UsedBytes > 0, err)
	fmt.Println("unpublished", m.Unpublish(ctx, target))
	fmt.Println("unstaged", m.Unstage(ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
	// Output:
	// staged disk 1 <nil>
	// published <nil>
	// used true <nil>
	// unpublished <nil>
	// unstaged <nil>
}

// Every error has a class, and is a gRPC status that a driver can return as it is.
func ExampleMounter_Stage_errors() {
	ctx := context.Background()
	node, err := winsim.New(winsim.Default())
	if err != nil {
		panic(err)
	}
	m, err := mounter.New(ctx, emulated(node))
	if err != nil {
		panic(err)
	}
	defer m.Close()
	_, err = m.Stage(ctx, mounter.StageRequest{Path: `C:\var\lib\kubelet\staging`, Source: mounter.Disk{Serial: "vol0123"}})
	fmt.Println(errors.Is(err, failure.NotFound), failure.Code(err))
	// Output: true NotFound
}

// emulated is Library of package mountertest, which is a module of its own.
func emulated(node *winsim.Node) mounter.Option {
	return mounter.WithHosts(mounter.Hosts{
		Disk: node.Disk(), Volume: node.Volume(), Filesystem: node.Filesystem(), SMB: node.SMB(), ISCSI: node.ISCSI(),
		Node: func(options ...nodeapi.Option) (*nodeapi.Node, error) { return nodeapi.NewOn(node, options...) },
	})
}
