package winsim_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

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
		{"delay", "iscsi:\n  pnpDelay: -1s\n", "node.yaml: line 2: iscsi.pnpDelay: must not be negative"},
		{"no address", "iscsi:\n  portals:\n    - port: 3260\n", "node.yaml: line 3: iscsi.portals[0].address: the address of the portal is empty"},
		{"port", "iscsi:\n  portals:\n    - {address: 10.0.0.10, port: 65536}\n", `node.yaml: line 3: iscsi.portals[0].port: "65536" is not a uint16`},
		{"portal twice", "iscsi:\n  portals:\n    - {address: a}\n    - {address: A, port: 3260}\n", "node.yaml: line 4: iscsi.portals[1].address: A:3260 is used twice"},
		{"no portal", "iscsi:\n  targets:\n    - iqn: iqn.2025-01.com.example:a\n", "node.yaml: line 3: iscsi.targets[0].portals: no portal offers the target"},
		{"name", portal + "  targets:\n    - iqn: a\n", `node.yaml: line 4: iscsi.targets[0].iqn: "a" is not the name of a target`},
		{"target twice", targets + "    - iqn: IQN.2025-01.com.example:A\n", `node.yaml: line 5: iscsi.targets[1].iqn: "IQN.2025-01.com.example:A" is used twice`},
		{"other portal", targets + "      portals: [10.0.0.10, 10.0.0.11]\n", `node.yaml: line 5: iscsi.targets[0].portals[1]: "10.0.0.11" is not a portal of the model`},
		{"busy", targets + "      busyLogouts: -1\n", "node.yaml: line 5: iscsi.targets[0].busyLogouts: must not be negative"},
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

// twoPortals is a node with a target at two portals, whose disks are LUN 3 and 7.
func twoPortals(t *testing.T, mpio bool) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.ISCSI = winsim.ISCSI{
		MPIO:    mpio,
		Portals: []winsim.ISCSIPortal{{Address: "10.0.0.10", Registered: true}, {Address: "10.0.0.11", Registered: true}},
		Targets: []winsim.ISCSITarget{{IQN: target, CHAP: &winsim.CHAP{User: "me", Secret: "secret-of-me-12"}, LUNs: []winsim.Disk{
			{Size: winsim.GiB, SCSI: &winsim.SCSI{LUN: 3}, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Volume: &winsim.Volume{}}}},
			{Size: winsim.GiB, SCSI: &winsim.SCSI{LUN: 7}},
		}}},
	}
	return newNode(t, model)
}

const target = "iqn.2025-01.com.example:two"

// join logs in through a portal, with or without others.
func join(t *testing.T, node *winsim.Node, address string, multipath bool) (win.SessionID, error) {
	t.Helper()
	return node.Login(t.Context(), win.Login{
		Target: target, Portal: win.TargetPortal{Address: address, Port: 3260}, Auth: win.OneWayCHAP, User: "me", Secret: win.NewSecret("secret-of-me-12"), Multipath: multipath,
	})
}

// connections are the portals of the sessions with a connection, and the LUNs and numbers of the disks.
func connections(t *testing.T, node *winsim.Node) string {
	t.Helper()
	sessions, err := node.Sessions(t.Context())
	mustAll(t, err)
	text := ""
	for _, s := range sessions {
		text += fmt.Sprint(s.Portals)
	}
	if len(sessions) > 0 {
		devices, err := node.DevicesForSession(t.Context(), sessions[0].ID)
		mustAll(t, err)
		for _, d := range devices {
			text += fmt.Sprintf(" %d:%d", d.LUN, int32(d.Device.Number))
		}
	}
	return text
}

// readable reports whether a disk answers.
func readable(t *testing.T, node *winsim.Node, number uint32) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := node.ReadDevice(ctx, win.PhysicalDrive(number), 0, 512)
	return err == nil
}

// TestISCSI_Paths: with MPIO a second session is another way to the same disks, which are lost only with both.
func TestISCSI_Paths(t *testing.T) {
	node := twoPortals(t, true)
	first, err := join(t, node, "10.0.0.10", false)
	mustAll(t, err)
	if _, err := join(t, node, "10.0.0.11", false); !bare(err, winerr.ISCSITargetAlreadyLoggedIn) {
		t.Errorf("a second session that does not allow for others: %v", err)
	}
	_, err = join(t, node, "10.0.0.11", true)
	mustAll(t, err)
	number := node.Describe().ISCSI.Targets[0].LUNs[0].Number
	want := func(text string, answers bool) {
		t.Helper()
		if got := connections(t, node); got != text || readable(t, node, number) != answers {
			t.Errorf("%s, want %s; the disk answers: %t", got, text, !answers)
		}
	}
	both := fmt.Sprintf(" 3:%d 7:%d", number, number+1)
	want("[10.0.0.10:3260][10.0.0.11:3260]"+both, true)
	devices, err := node.DiskDevices(t.Context())
	mustAll(t, err)
	if at, err := node.SCSIAddress(t.Context(), win.PhysicalDrive(number)); err != nil || at.LUN == 3 || !strings.HasPrefix(string(devices[number]), `\\?\mpio#`) {
		t.Errorf("the disk is at %+v, %v, in %v", at, err, devices)
	}
	mustAll(t, node.SetISCSIPortalDown("10.0.0.10", true))
	want("[][10.0.0.11:3260]"+both, true)
	mustAll(t, node.SetISCSIPortalDown("10.0.0.11", true))
	want("[][]"+both, false)
	mustAll(t, node.Sleep(t.Context(), 20*time.Second))
	want("[][] 3:-1 7:-1", false)
	mustAll(t, node.SetISCSIPortalDown("10.0.0.11", false))
	want("[][10.0.0.11:3260]"+both, true)
	release, err := node.Hold(target)
	mustAll(t, err, node.Logout(t.Context(), first))
	want("[10.0.0.11:3260]"+both, true)
	release()
}

// TestISCSI_Secrets: a session lives as long as its connection, whatever the secret is. A lost one comes back only with
// its secret, and does not end while a file is open.
func TestISCSI_Secrets(t *testing.T) {
	node := twoPortals(t, false)
	session, err := join(t, node, "10.0.0.10", false)
	mustAll(t, err, node.SetISCSICHAP(target, &winsim.CHAP{User: "me", Secret: "secret-of-you12"}))
	if _, err := join(t, node, "10.0.0.11", true); !bare(err, winerr.ISCSIAuthenticationFailure) {
		t.Errorf("a login with the old secret: %v", err)
	}
	lun := node.Describe().ISCSI.Targets[0].LUNs[0]
	const folder = `C:\folder`
	mustAll(t, node.Sleep(t.Context(), time.Minute), node.MountFolder(folder, lun.Partitions[0].Volume.ID), node.WriteFile(folder+`\file`, "data"))
	release, err := node.Hold(folder + `\file`)
	mustAll(t, err)
	if err := node.Logout(t.Context(), session); !bare(err, winerr.ISCSIDeviceBusy) {
		t.Errorf("a logout while a file is open: %v", err)
	}
	release()
	mustAll(t, node.SetISCSIPortalDown("10.0.0.10", true), node.SetISCSIPortalDown("10.0.0.10", false))
	if got := connections(t, node); !strings.HasPrefix(got, "[] ") || readable(t, node, lun.Number) {
		t.Errorf("after the secret has changed, a lost session is %s", got)
	}
	mustAll(t, node.SetISCSICHAP(target, &winsim.CHAP{User: "me", Secret: "secret-of-me-12"}))
	if got := connections(t, node); !strings.HasPrefix(got, "[10.0.0.10:3260] ") || !readable(t, node, lun.Number) {
		t.Errorf("with its secret, it is %s", got)
	}
}
