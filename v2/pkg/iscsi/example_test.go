package iscsi_test

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// A driver logs in to a target, finds its disks, and logs out again. On a Windows node the host
// is hostapi.New(); here it is an emulated node, whose default portal offers two targets.
func Example() {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		fmt.Println(err)
		return
	}
	targets, err := iscsi.New(node.ISCSI())
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, portal := context.Background(), &iscsi.TargetPortal{TargetAddress: "10.0.0.10"}
	if _, err := targets.AddTargetPortal(ctx, &iscsi.AddTargetPortalRequest{TargetPortal: portal}); err != nil {
		fmt.Println(err)
		return
	}
	found, err := targets.DiscoverTargetPortal(ctx, &iscsi.DiscoverTargetPortalRequest{TargetPortal: portal})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(found.IQNs)

	const iqn = "iqn.2025-01.com.example:guarded"
	_, err = targets.ConnectTarget(ctx, &iscsi.ConnectTargetRequest{
		TargetPortal: portal, IQN: iqn,
		AuthType: iscsi.ONE_WAY_CHAP, ChapUsername: "winsim", ChapSecret: "winsim-secret-1",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	disks, err := targets.GetTargetDisks(ctx, &iscsi.GetTargetDisksRequest{TargetPortal: portal, IQN: iqn})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("disks", disks.DiskIDs)
	_, err = targets.DisconnectTarget(ctx, &iscsi.DisconnectTargetRequest{TargetPortal: portal, IQN: iqn})
	fmt.Println(err, node.Describe().ISCSI.Sessions)
	// Output:
	// [iqn.2025-01.com.example:open iqn.2025-01.com.example:guarded]
	// disks [4 5]
	// <nil> []
}
