package ported

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"

	"sigs.k8s.io/azuredisk-csi-driver/pkg/azuredisk"
	"sigs.k8s.io/azuredisk-csi-driver/pkg/mounter"
	"sigs.k8s.io/azuredisk-csi-driver/ported/life"
	"sigs.k8s.io/azuredisk-csi-driver/ported/machine"
)

func Test(t *testing.T) {
	const id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/pvc"
	life.Test(t, life.Driver{
		Model:   winsim.Azure(),
		Disk:    1,
		Volume:  life.Volume{ID: id, PublishContext: map[string]string{"LUN": "0"}},
		Missing: life.Volume{ID: id + "-missing", PublishContext: map[string]string{"LUN": "9"}},
		Serve: func(node *winsim.Node, m *kit.Mounter) (csi.IdentityServer, csi.NodeServer) {
			machine.Use(node)
			d := azuredisk.NewPorted(mounter.Bind(t.Context(), m))
			return d, d
		},
	})
}
