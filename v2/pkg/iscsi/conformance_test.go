package iscsi_test

import (
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestConformance(t *testing.T) {
	for name, change := range map[string]func(*winsim.Model){
		"usual":           func(*winsim.Model) {},
		"slow":            func(m *winsim.Model) { m.ISCSI.PnPDelay, m.ISCSI.Portals[0].Delay = 20*time.Second, time.Minute },
		"busy":            func(m *winsim.Model) { m.ISCSI.Targets[0].BusyLogouts = 5 },
		"found by rescan": func(m *winsim.Model) { m.Storage.AttachByRescan = true },
		"shared bus":      func(m *winsim.Model) { m.Storage.SANPolicy = winsim.OfflineShared },
		"many disks": func(m *winsim.Model) {
			m.ISCSI.Targets[0].LUNs = append(m.ISCSI.Targets[0].LUNs, winsim.Disk{Size: winsim.GiB}, winsim.Disk{Size: winsim.GiB})
		},
	} {
		t.Run(name, func(t *testing.T) {
			hosttest.ISCSI(t, func(t *testing.T) hosttest.ISCSINode {
				t.Helper()
				model := winsim.Default()
				model.ISCSI.Portals = append(model.ISCSI.Portals, winsim.ISCSIPortal{Address: "fd00::1", Port: 3261}, winsim.ISCSIPortal{Address: "10.0.0.12", Down: true})
				model.ISCSI.Targets = append(model.ISCSI.Targets, winsim.ISCSITarget{IQN: "iqn.2025-01.com.example:other", Portals: []string{"[fd00::1]:3261"}})
				for i := range 2 { // those of the preset
					model.ISCSI.Targets[i].Portals = []string{"10.0.0.10"}
				}
				change(&model)
				return conformanceNode(t, model)
			})
		})
	}
}

func conformanceNode(t *testing.T, model winsim.Model) hosttest.ISCSINode {
	t.Helper()
	node, err := winsim.New(model)
	require.NoError(t, err)
	api, err := iscsi.New(node.ISCSI())
	require.NoError(t, err)
	disks, err := disk.New(node.Disk())
	require.NoError(t, err)
	volumes, err := volume.New(node.Volume())
	require.NoError(t, err)
	return hosttest.ISCSINode{
		API:          api,
		Portal:       &iscsi.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260},
		Dead:         &iscsi.TargetPortal{TargetAddress: "10.0.0.12", TargetPort: 3260},
		Other:        &iscsi.TargetPortal{TargetAddress: "fd00::1", TargetPort: 3261},
		OtherTarget:  "iqn.2025-01.com.example:other",
		Open:         "iqn.2025-01.com.example:open",
		OpenDisks:    len(model.ISCSI.Targets[0].LUNs),
		Guarded:      "iqn.2025-01.com.example:guarded",
		User:         "winsim",
		Secret:       "winsim-secret-1",
		MutualSecret: "winsim-mutual-1",
		Missing:      "iqn.2025-01.com.example:missing",
		SetService:   func(state string) error { return node.SetServiceState("MSiSCSI", winsim.ServiceState(state)) },
		Hold:         node.Hold,
		Disks:        disks,
		Volumes:      volumes,
		Root:         `C:\var\lib\kubelet\plugins`,
		WriteFile:    node.WriteFile,
		ReadFile:     node.ReadFile,
	}
}
