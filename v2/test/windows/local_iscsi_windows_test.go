package windows_test

import (
	"context"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// iscsiQuestions asks the initiator what it can be asked without changing anything. On
// most machines the service does not run, and Wine has none: an error must be a code of
// Windows, and nothing may panic.
func TestLocal_ISCSIQuestions(t *testing.T) {
	for name, ask := range map[string]func(context.Context) error{
		"portals":           func(ctx context.Context) error { _, err := machine.ReportSendTargetPortals(ctx); return err },
		"targets":           func(ctx context.Context) error { _, err := machine.ReportTargets(ctx); return err },
		"portals of target": func(ctx context.Context) error { _, err := machine.ReportTargetPortals(ctx, noTarget); return err },
		"sessions":          func(ctx context.Context) error { _, err := machine.Sessions(ctx); return err },
		"devices":           func(ctx context.Context) error { _, err := machine.DevicesForSession(ctx, win.SessionID{}); return err },
		"persistent logins": func(ctx context.Context) error { _, err := machine.PersistentLogins(ctx); return err },
		// These name what does not exist.
		"remove portal": func(ctx context.Context) error {
			return machine.RemoveSendTargetPortal(ctx, win.SendTargetPortal{Portal: unregistered, InitiatorPort: win.AnyInitiatorPort})
		},
		"remove login": func(ctx context.Context) error {
			return machine.RemovePersistentTarget(ctx, win.PersistentLogin{Target: noTarget, InitiatorPort: win.AnyInitiatorPort, Portal: unregistered})
		},
		"login": func(ctx context.Context) error {
			_, err := machine.Login(ctx, win.Login{Target: noTarget, Portal: unregistered, Auth: win.OneWayCHAP, User: "unknown", Secret: win.NewSecret("no-secret-at-all")})
			return err
		},
		"logout": func(ctx context.Context) error { return machine.Logout(ctx, win.SessionID{}) },
	} {
		err := ask(timeLimit(t))
		if t.Logf("%s: %v", name, err); err != nil && winerr.CodeOf(err) == 0 {
			t.Errorf("%s fails without a code: %v", name, err)
		}
	}
}

const noTarget = "iqn.2001-04.com.example:no-such-target"

// unregistered is an address for documentation (RFC 5737), which no machine has.
var unregistered = win.TargetPortal{Address: "192.0.2.1", Port: 3260}
