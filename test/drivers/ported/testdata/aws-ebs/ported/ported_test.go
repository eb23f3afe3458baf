package ported

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	kit "github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
	mountutils "k8s.io/mount-utils"

	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/cloud/metadata"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/driver"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/mounter"
	"github.com/kubernetes-sigs/aws-ebs-csi-driver/ported/life"
)

type region struct{ metadata.MetadataService }

func (region) GetRegion() string { return "us-east-1" }

func Test(t *testing.T) {
	context := map[string]string{"devicePath": "/dev/xvdba"}
	life.Test(t, life.Driver{
		Model:   winsim.EBSNVMe(),
		Disk:    1,
		Volume:  life.Volume{ID: "vol-0123456789abcdef0", PublishContext: context},
		Missing: life.Volume{ID: "vol-0999", PublishContext: context},
		Offline: true,
		Node: func(_ *testing.T, m *kit.Mounter) csi.NodeServer {
			nodeMounter := &mounter.NodeMounter{SafeFormatAndMount: &mountutils.SafeFormatAndMount{Interface: m}}
			return driver.NewNodeService(&driver.Options{}, region{}, nodeMounter, nil)
		},
	})
}
