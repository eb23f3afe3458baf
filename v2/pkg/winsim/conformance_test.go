package winsim_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const dataVolume = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`

// withDataVolume is the default node with a second volume that has no drive letter.
func withDataVolume() winsim.Model {
	model := winsim.Default()
	model.Volumes = append(model.Volumes, winsim.Volume{ID: dataVolume})
	return model
}

func newNode(t *testing.T, model winsim.Model) *winsim.Node {
	t.Helper()
	node, err := winsim.New(model)
	mustAll(t, err)
	return node
}

func TestConformance_Filesystem(t *testing.T) {
	hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
		t.Helper()
		return filesystemNode(t, newNode(t, withDataVolume()))
	})
}

// filesystemNode is what the suite has to know about a node with a data volume.
func filesystemNode(t *testing.T, node *winsim.Node) hosttest.FilesystemNode {
	t.Helper()
	api, err := filesystem.New(node.Filesystem())
	mustAll(t, err)
	return hosttest.FilesystemNode{
		API: api, Root: kubelet + `\pods`, WriteFile: node.WriteFile, ReadFile: node.ReadFile,
		MountVolume: func(path string) error { return node.MountFolder(path, dataVolume) },
		LoseVolume:  func() error { return node.SetVolumeState(dataVolume, winsim.Gone) },
	}
}

func newSystem(t *testing.T, node *winsim.Node, options ...system.Option) system.Interface {
	t.Helper()
	api, err := system.New(node.System(), options...)
	mustAll(t, err)
	return api
}
