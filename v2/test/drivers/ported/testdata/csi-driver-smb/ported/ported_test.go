package ported

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"

	"github.com/kubernetes-csi/csi-driver-smb/pkg/smb"
	"github.com/kubernetes-csi/csi-driver-smb/ported/life"
	"github.com/kubernetes-csi/csi-driver-smb/ported/machine"
)

func Test(t *testing.T) {
	secrets := map[string]string{"username": "csi", "password": "csi-Pa55"}
	life.Test(t, life.Driver{
		Model:   winsim.Default(),
		Volume:  life.Volume{ID: "volume", VolumeContext: map[string]string{"source": "//files/data"}, Secrets: secrets},
		Missing: life.Volume{ID: "missing", VolumeContext: map[string]string{"source": "//files/missing"}, Secrets: secrets},
		Serve: func(node *winsim.Node, m *kit.Mounter) (csi.IdentityServer, csi.NodeServer) {
			machine.Use(node)
			d := smb.NewPorted(kit.NewSafeFormatAndMount(m).SafeFormatAndMount)
			return d, d
		},
	})
}
