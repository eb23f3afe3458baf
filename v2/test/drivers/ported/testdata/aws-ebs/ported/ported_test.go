package ported

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"

	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/cloud/metadata"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/driver"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/mounter"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/ported/life"
)

func Test(t *testing.T) {
	context := map[string]string{"devicePath": "/dev/xvdba"}
	life.Test(t, life.Driver{
		Model:   winsim.EBSNVMe(),
		Disk:    1,
		Volume:  life.Volume{ID: "vol-0123456789abcdef0", PublishContext: context},
		Missing: life.Volume{ID: "vol-0999", PublishContext: context},
		Offline: true,
		Serve: func(_ *winsim.Node, m *kit.Mounter) (csi.IdentityServer, csi.NodeServer) {
			nodeMounter := &mounter.NodeMounter{SafeFormatAndMount: mounter.Bind(t.Context(), m)}
			instance := &metadata.Metadata{InstanceID: "i-0123456789abcdef0", InstanceType: "m5.large", Region: "us-east-1", AvailabilityZone: "us-east-1a"}
			return &driver.Driver{}, driver.NewNodeService(&driver.Options{}, instance, nodeMounter, nil)
		},
	})
}
