package winsim_test

import (
	"testing"
	"time"

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

// withServices is the default node with services for the suite.
func withServices() winsim.Model {
	model := winsim.Default()
	model.Services = append(model.Services,
		winsim.Service{Name: "Base", StartTime: time.Second, StopTime: time.Minute / 4},
		winsim.Service{Name: "Top", DependsOn: []string{"Base"}, StartTime: 5 * time.Second, StopTime: time.Second},
		winsim.Service{Name: "Off", StartType: winsim.StartDisabled},
		winsim.Service{Name: "Crash", StartTime: time.Second, ExitCode: 1067},
		winsim.Service{Name: "Stubborn", StartType: winsim.StartAutomatic, RefusesStop: true},
	)
	return model
}

// systemNode is what the suite has to know about that node.
func systemNode(api system.Interface) hosttest.SystemNode {
	serial := "WINSIM-NODE-1"
	return hosttest.SystemNode{
		API:     api,
		Serial:  &serial,
		Service: "vds",
		Known: system.GetServiceResponse{
			DisplayName: "Virtual Disk",
			StartType:   system.START_TYPE_MANUAL,
			Status:      system.SERVICE_STATUS_STOPPED,
		},
		Needed: "Base", Dependent: "Top",
		Disabled: "Off", Failing: "Crash", Stubborn: "Stubborn",
		Missing: "Missing",
	}
}

func TestConformance_System(t *testing.T) {
	t.Run("without a limit", func(t *testing.T) {
		hosttest.System(t, func(t *testing.T) hosttest.SystemNode {
			t.Helper()
			return systemNode(newSystem(t, newNode(t, withServices())))
		})
	})
	t.Run("with one", func(t *testing.T) {
		hosttest.System(t, func(t *testing.T) hosttest.SystemNode {
			t.Helper()
			node := systemNode(newSystem(t, newNode(t, withServices()), system.AllowedServices("*")))
			node.Forbidden = map[string]string{
				"itself": "csi-proxy", "kubelet": "kubelet", "containers": "containerd", "RPC": "RpcSs", "DCOM": "DcomLaunch",
				"endpoint mapper": "RpcEptMapper", "networks": "hns", "compute": "vmcompute",
			}
			node.Blocked = "nsi"
			return node
		})
	})
}

func newSystem(t *testing.T, node *winsim.Node, options ...system.Option) system.Interface {
	t.Helper()
	api, err := system.New(node.System(), options...)
	mustAll(t, err)
	return api
}
