package winsim_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestLoadModel_RefusesISCSI(t *testing.T) {
	const (
		portal  = "iscsi:\n  portals: [{address: 10.0.0.10}]\n"
		targets = portal + "  targets:\n    - iqn: iqn.2025-01.com.example:a\n"
	)
	for _, c := range []struct {
		name, yaml, want string
	}{
		{"initiator", "iscsi:\n  initiator: me\n", `node.yaml: line 2: iscsi.initiator: "me" is not the name of a target`},
		{"no address", "iscsi:\n  portals:\n    - port: 3260\n", "node.yaml: line 3: iscsi.portals[0].address: the address of the portal is empty"},
		{"port", "iscsi:\n  portals:\n    - {address: 10.0.0.10, port: 65536}\n", `node.yaml: line 3: iscsi.portals[0].port: "65536" is not a uint16`},
		{"portal twice", "iscsi:\n  portals:\n    - {address: a}\n    - {address: A, port: 3260}\n", "node.yaml: line 4: iscsi.portals[1].address: A:3260 is used twice"},
		{"no portal", "iscsi:\n  targets:\n    - iqn: iqn.2025-01.com.example:a\n", "node.yaml: line 3: iscsi.targets[0].portals: no portal offers the target"},
		{"name", portal + "  targets:\n    - iqn: a\n", `node.yaml: line 4: iscsi.targets[0].iqn: "a" is not the name of a target`},
		{"target twice", targets + "    - iqn: IQN.2025-01.com.example:A\n", `node.yaml: line 5: iscsi.targets[1].iqn: "IQN.2025-01.com.example:A" is used twice`},
		{"other portal", targets + "      portals: [10.0.0.10, 10.0.0.11]\n", `node.yaml: line 5: iscsi.targets[0].portals[1]: "10.0.0.11" is not a portal of the model`},
		{"secret", targets + "      chap: {secret: short}\n", "node.yaml: line 5: iscsi.targets[0].chap.secret: must have 12 to 16 bytes"},
		{"size", targets + "      luns:\n        - {size: 1}\n", "node.yaml: line 6: iscsi.targets[0].luns[0].size: 1 is not a valid disk size"},
		{"number", targets + "      luns: [{size: 1GiB, number: 7}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].number: remove number; the disk gets one when it appears"},
		{"bus", targets + "      luns: [{size: 1GiB, bus: sas}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].bus: must be iscsi"},
		{"scsi", targets + "      luns: [{size: 1GiB, scsi: {port: 1}}]\n", "node.yaml: line 5: iscsi.targets[0].luns[0].scsi: only the LUN is allowed; the initiator determines the rest"},
		{"LUN twice", targets + "      luns: [{size: 1GiB, scsi: {lun: 1}}, {size: 1GiB, scsi: {lun: 1}}]\n", "node.yaml: line 5: iscsi.targets[0].luns[1].scsi: LUN 1 is used twice"},
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

// logIn begins a session with a target of the preset.
func logIn(ctx context.Context, node *winsim.Node) error {
	_, err := node.Login(ctx, win.Login{Target: "iqn.2025-01.com.example:open", Portal: win.TargetPortal{Address: "10.0.0.10", Port: 3260}})
	return err
}

// TestISCSI_ServiceStopped: each call says when the service does not run.
func TestISCSI_ServiceStopped(t *testing.T) {
	node := newNode(t, winsim.Default())
	mustAll(t, node.SetServiceState("MSiSCSI", winsim.ServiceStopped))
	for i := range reflect.TypeFor[win.ISCSI]().NumMethod() {
		method := reflect.TypeFor[win.ISCSI]().Method(i)
		if err := callMethod(t, node, method.Name); !bare(err, winerr.ISCSIServiceNotRunning) {
			t.Errorf("%s without the service: %v", method.Name, err)
		}
	}
}

// TestFault_SessionByTarget: calls about a session can be hit by the name of its target.
func TestFault_SessionByTarget(t *testing.T) {
	model := winsim.Default()
	model.ISCSI.Portals[0].Registered = true
	node := newNode(t, model)
	mustAll(t, logIn(t.Context(), node))
	sessions, err := node.Sessions(t.Context())
	if err != nil || len(sessions) != 1 {
		t.Fatalf("%v, %v", sessions, err)
	}
	inject(t, node, winsim.Fault{Call: "Logout", Object: "*:OPEN", Error: 5})
	if err := node.Logout(t.Context(), sessions[0].ID); !bare(err, winerr.AccessDenied) {
		t.Errorf("logout: %v", err)
	}
}

// TestLogin_Twice: of two logins to a slow target at once, one comes too late.
func TestLogin_Twice(t *testing.T) {
	model := winsim.Default()
	model.ISCSI.Portals[0].Registered = true
	node := newNode(t, model)
	done := make(chan error)
	for range 2 {
		go func() { done <- logIn(t.Context(), node) }()
	}
	first, second := <-done, <-done
	if (first == nil) == (second == nil) || len(node.Describe().ISCSI.Sessions) != 1 {
		t.Errorf("%v and %v, and %d sessions", first, second, len(node.Describe().ISCSI.Sessions))
	}
}
