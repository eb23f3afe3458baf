package winsim_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
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
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestConformance_Filesystem(t *testing.T) {
	hosttest.Filesystem(t, func(t *testing.T) hosttest.FilesystemNode {
		t.Helper()
		node := newNode(t, withDataVolume())
		api, err := filesystem.New(node.Filesystem())
		if err != nil {
			t.Fatal(err)
		}
		return hosttest.FilesystemNode{
			API:         api,
			Root:        `C:\var\lib\kubelet\pods`,
			WriteFile:   node.WriteFile,
			ReadFile:    node.ReadFile,
			MountVolume: func(path string) error { return node.MountFolder(path, dataVolume) },
			LoseVolume:  func() error { return node.SetVolumeState(dataVolume, winsim.Gone) },
		}
	})
}
