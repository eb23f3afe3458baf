package winsim_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestLoadModel_ISCSI(t *testing.T) {
	text, err := os.Open("testdata/iscsi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	got, err := winsim.LoadModel(text, "iscsi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := winsim.ISCSI{
		PnPDelay: time.Second,
		Portals: []winsim.ISCSIPortal{
			{Address: "10.0.0.10"},
			{Address: "10.0.0.11", Port: 3261, Delay: 5 * time.Second},
			{Address: "10.0.0.12", Down: true},
			{Address: "fd00::1", Registered: true},
		},
		Targets: []winsim.ISCSITarget{
			{
				IQN: "iqn.2025-01.com.example:open", Portals: []string{"10.0.0.10", "10.0.0.11:3261"}, BusyLogouts: 1,
				LUNs: []winsim.Disk{
					{Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{Files: []winsim.File{{Path: "file", Content: "data"}}}}}},
					{Size: 2 * winsim.GiB},
				},
			},
			{
				IQN: "iqn.2025-01.com.example:guarded", Portals: []string{"10.0.0.10"},
				CHAP: &winsim.CHAP{User: "me", Secret: "secret-of-me-12", MutualSecret: "secret-of-it-12"},
				LUNs: []winsim.Disk{{Size: winsim.GiB}},
			},
			{IQN: "iqn.2025-01.com.example:stored", Portals: []string{"[fd00::1]:3260"}, LUNs: []winsim.Disk{{Size: 3 * winsim.GiB}}},
		},
		Logins: []winsim.ISCSILogin{{Target: "iqn.2025-01.com.example:stored", Portal: "fd00::1"}},
	}
	if diff := cmp.Diff(want, got.ISCSI); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}

func TestLoadModel_RefusesISCSI(t *testing.T) {
	const (
		portal  = "iscsi:\n  portals: [{address: 10.0.0.10}]\n"
		targets = portal + "  targets:\n    - iqn: iqn.2025-01.com.example:a\n"
	)
	for _, c := range []struct {
		name, yaml, want string
	}{
		{"unknown field", "iscsi:\n  portal: []\n", "node.yaml: line 2: iscsi.portal: unknown field; use one of initiator, pnpDelay, portals, targets, logins"},
		{"initiator", "iscsi:\n  initiator: me\n", `node.yaml: line 2: iscsi.initiator: "me" is not the name of a target`},
		{"delay", "iscsi:\n  pnpDelay: -1s\n", "node.yaml: line 2: iscsi.pnpDelay: must not be negative"},
		{"no address", "iscsi:\n  portals:\n    - port: 3260\n", "node.yaml: line 3: iscsi.portals[0].address: the address of the portal is empty"},
		{"address", "iscsi:\n  portals:\n    - {address: 10.0.0.256}\n", `node.yaml: line 3: iscsi.portals[0].address: "10.0.0.256" is neither an IP address nor a host name`},
		{"port", "iscsi:\n  portals:\n    - {address: 10.0.0.10, port: 65536}\n", `node.yaml: line 3: iscsi.portals[0].port: "65536" is not a uint16`},
		{"portal delay", "iscsi:\n  portals:\n    - {address: a, delay: -1s}\n", "node.yaml: line 3: iscsi.portals[0].delay: must not be negative"},
		{"portal twice", "iscsi:\n  portals:\n    - {address: a}\n    - {address: A, port: 3260}\n", "node.yaml: line 4: iscsi.portals[1].address: A:3260 is used twice"},
		{"no portal", "iscsi:\n  targets:\n    - iqn: iqn.2025-01.com.example:a\n", "node.yaml: line 3: iscsi.targets[0].portals: no portal offers the target"},
		{"name", portal + "  targets:\n    - iqn: a\n", `node.yaml: line 4: iscsi.targets[0].iqn: "a" is not the name of a target`},
		{"target twice", targets + "    - iqn: IQN.2025-01.com.example:A\n", `node.yaml: line 5: iscsi.targets[1].iqn: "IQN.2025-01.com.example:A" is used twice`},
		{"other portal", targets + "      portals: [10.0.0.10, 10.0.0.11]\n", `node.yaml: line 5: iscsi.targets[0].portals[1]: "10.0.0.11" is not a portal of the model`},
		{"other port", targets + "      portals: ['10.0.0.10:70000']\n", `node.yaml: line 5: iscsi.targets[0].portals[0]: "10.0.0.10:70000" is not a portal of the model`},
		{"busy", targets + "      busyLogouts: -1\n", "node.yaml: line 5: iscsi.targets[0].busyLogouts: must not be negative"},
		{"secret", targets + "      chap: {secret: short}\n", "node.yaml: line 5: iscsi.targets[0].chap.secret: must have 12 to 16 bytes"},
		{"mutual secret", targets + "      chap: {secret: abcdefghijkl, mutualSecret: short}\n", "node.yaml: line 5: iscsi.targets[0].chap.mutualSecret: must have 12 to 16 bytes"},
		{"size", targets + "      luns:\n        - {size: 1}\n", "node.yaml: line 6: iscsi.targets[0].luns[0].size: 1 is not a valid disk size"},
		{"number", targets + "      luns: [{size: 1GiB, number: 7}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].number: remove number; the disk gets one when it appears"},
		{"bus", targets + "      luns: [{size: 1GiB, bus: sas}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].bus: must be iscsi"},
		{"scsi", targets + "      luns: [{size: 1GiB, scsi: {lun: 1}}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].scsi: remove scsi; the target determines it"},
		{"system", targets + "      luns: [{size: 1GiB, system: true}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].system: an iSCSI disk cannot be the system disk"},
		{"too many", targets + "      luns: [" + strings.Repeat("{size: 1GiB}, ", 257) + "]\n", "node.yaml: line 5: iscsi.targets[0].luns[256].size: a target has at most 256 disks"},
		{"login to an unknown target", targets + "  logins: [{target: iqn.2025-01.com.example:b, portal: 10.0.0.10}]\n", `node.yaml: line 5: iscsi.logins[0].target: "iqn.2025-01.com.example:b" is not a target of the model`},
		{"login at nothing", targets + "  logins: [{target: iqn.2025-01.com.example:a, portal: 10.0.0.11}]\n", `node.yaml: line 5: iscsi.logins[0].portal: "10.0.0.11" does not offer the target`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := winsim.LoadModel(strings.NewReader(c.yaml), "node.yaml")
			var problem *winsim.ModelError
			if !errors.As(err, &problem) || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error\n%v, want\n%s", err, c.want)
			}
		})
	}
}

// iscsiCalls makes every call of the initiator once, on the default node.
func iscsiCalls(t *testing.T, node *winsim.Node) map[string]func() error {
	t.Helper()
	ctx := t.Context()
	portal, target := win.TargetPortal{Address: "10.0.0.10", Port: 3260}, "iqn.2025-01.com.example:open"
	id := win.SessionID{AdapterUnique: 1}
	return map[string]func() error{
		"ReportSendTargetPortals":      func() error { _, err := node.ReportSendTargetPortals(ctx); return err },
		"AddSendTargetPortal":          func() error { return node.AddSendTargetPortal(ctx, portal) },
		"RefreshSendTargetPortal":      func() error { return node.RefreshSendTargetPortal(ctx, portal) },
		"RemoveSendTargetPortal":       func() error { return node.RemoveSendTargetPortal(ctx, win.SendTargetPortal{Portal: portal}) },
		"ReportTargets":                func() error { _, err := node.ReportTargets(ctx); return err },
		"ReportTargetPortals":          func() error { _, err := node.ReportTargetPortals(ctx, target); return err },
		"Login":                        func() error { _, err := node.Login(ctx, win.Login{Target: target, Portal: portal}); return err },
		"Sessions":                     func() error { _, err := node.Sessions(ctx); return err },
		"DevicesForSession":            func() error { _, err := node.DevicesForSession(ctx, id); return err },
		"Logout":                       func() error { return node.Logout(ctx, id) },
		"PersistentLogins":             func() error { _, err := node.PersistentLogins(ctx); return err },
		"RemovePersistentTarget":       func() error { return node.RemovePersistentTarget(ctx, win.PersistentLogin{Target: target}) },
		"SetInitiatorCHAPSharedSecret": func() error { return node.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("xyzzy-xyzzy-xyz")) },
	}
}

// TestFault_EveryISCSICall is TestFault_EveryStorageCall for the initiator; and each call says
// when the service does not run.
func TestFault_EveryISCSICall(t *testing.T) {
	node := newProvenNode(t, winsim.Default())
	calls := iscsiCalls(t, node)
	for method := range reflect.TypeFor[win.ISCSI]().Methods() {
		if calls[method.Name] == nil {
			t.Errorf("there is no test of %s", method.Name)
		}
	}
	for call, run := range calls {
		checkFault(t, node, call, winerr.ISCSISessionBusy, run)
		mustAll(t, node.SetServiceState("MSiSCSI", winsim.ServiceStopped))
		if err := run(); !bare(err, winerr.ISCSIServiceNotRunning) {
			t.Errorf("%s without the service: %v", call, err)
		}
		mustAll(t, node.SetServiceState("MSiSCSI", winsim.ServiceRunning))
	}
	if len(node.Describe().ISCSI.Sessions) != 0 {
		t.Error("a session was begun by a call that failed")
	}
}

// TestFault_SessionByTarget: calls about a session can be hit by the name of its target.
func TestFault_SessionByTarget(t *testing.T) {
	node := newProvenNode(t, winsim.Default())
	calls := iscsiCalls(t, node)
	if err := errors.Join(calls["AddSendTargetPortal"](), calls["Login"]()); err != nil {
		t.Fatal(err)
	}
	sessions, err := node.Sessions(t.Context())
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%v, %v", sessions, err)
	}
	inject(t, node, winsim.Fault{Call: "Logout", Object: "*:OPEN", Error: 5})
	if err := node.Logout(t.Context(), sessions[0].ID); !bare(err, winerr.AccessDenied) {
		t.Errorf("logout: %v", err)
	}
}

// TestDefault_NoDiskBeforeLogin: the targets of the preset show nothing by themselves.
func TestDefault_NoDiskBeforeLogin(t *testing.T) {
	with, without := winsim.Default(), winsim.Default()
	without.ISCSI = winsim.ISCSI{}
	var lists []string
	for _, model := range []winsim.Model{with, without} {
		node := newProvenNode(t, model)
		devices, err := node.DiskDevices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		adapters, err := node.StorageAdapters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, fmt.Sprint(devices, adapters))
	}
	if diff := cmp.Diff(lists[1], lists[0]); diff != "" {
		t.Errorf("the disks differ (-without +with):\n%s", diff)
	}
}

// TestLogin_Twice: of two logins to a slow target at once, one comes too late.
func TestLogin_Twice(t *testing.T) {
	model := winsim.Default()
	model.ISCSI.Portals[0].Registered = true
	node := newProvenNode(t, model)
	login := iscsiCalls(t, node)["Login"]
	done := make(chan error)
	for range 2 {
		go func() { done <- login() }()
	}
	first, second := <-done, <-done
	if (first == nil) == (second == nil) || len(node.Describe().ISCSI.Sessions) != 1 {
		t.Errorf("%v and %v, and %d sessions", first, second, len(node.Describe().ISCSI.Sessions))
	}
}
