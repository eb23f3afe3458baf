package winsim_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestReboot_Services: a restart undoes starts and stops.
func TestReboot_Services(t *testing.T) {
	node := newNode(t, winsim.Default())
	machine := newSystem(t, node)
	if _, err := machine.StartService(t.Context(), &system.StartServiceRequest{Name: "vds"}); err != nil {
		t.Fatal(err)
	}
	if _, err := machine.StopService(t.Context(), &system.StopServiceRequest{Name: "MSiSCSI"}); err != nil {
		t.Fatal(err)
	}
	node.Reboot()
	for name, want := range map[string]winsim.ServiceState{
		"vds": winsim.ServiceStopped, "MSiSCSI": winsim.ServiceRunning, "RpcSs": winsim.ServiceRunning, "mrxsmb20": winsim.ServiceRunning,
	} {
		if info, err := node.ServiceInfo(name); err != nil || info.State != want {
			t.Errorf("%s: %+v, %v, want it %s", name, info, err, want)
		}
	}
}

// TestReboot_ISCSI: sessions are gone, and can be had again.
func TestReboot_ISCSI(t *testing.T) {
	node := newNode(t, winsim.Default())
	portal := &iscsi.TargetPortal{TargetAddress: "10.0.0.10", TargetPort: 3260}
	connect := func() int {
		t.Helper()
		targets, err := iscsi.New(node.ISCSI())
		mustAll(t, err)
		const iqn = "iqn.2025-01.com.example:open"
		_, add := targets.AddTargetPortal(t.Context(), &iscsi.AddTargetPortalRequest{TargetPortal: portal})
		_, discover := targets.DiscoverTargetPortal(t.Context(), &iscsi.DiscoverTargetPortalRequest{TargetPortal: portal})
		_, connect := targets.ConnectTarget(t.Context(), &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: iqn, AuthType: iscsi.NONE})
		disks, err := targets.GetTargetDisks(t.Context(), &iscsi.GetTargetDisksRequest{TargetPortal: portal, IQN: iqn})
		mustAll(t, add, discover, connect, err)
		return len(disks.DiskIDs)
	}
	if n := connect(); n != 1 {
		t.Fatalf("%d disks", n)
	}
	node.Reboot()
	if sessions := node.Describe().ISCSI.Sessions; len(sessions) != 0 {
		t.Errorf("%v survived", sessions)
	}
	if n := connect(); n != 1 {
		t.Errorf("%d disks after the restart", n)
	}
}
