package windows_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const noService = "no such service, says csi-proxy"

// anyService is a service that runs on every Windows, and on Wine.
func anyService(t *testing.T) string {
	t.Helper()
	if onWine() {
		return "PlugPlay"
	}
	return "RpcSs"
}

func TestLocal_Service(t *testing.T) {
	name := anyService(t)
	for _, name := range []string{name, strings.ToUpper(name), strings.ToLower(name)} {
		config, err := machine.ServiceConfig(timeLimit(t), name)
		if err != nil || config.DisplayName == "" || config.StartType > win.StartDisabled {
			t.Errorf("%s: %+v, %v", name, config, err)
		}
		status, err := machine.ServiceStatus(timeLimit(t), name)
		if err != nil || status.State != win.ServiceRunning || status.OwnProcess {
			t.Errorf("%s: %+v, %v, want it running, and not here", name, status, err)
		}
		t.Logf("%+v, %+v", config, status)
	}
	err := machine.StartService(timeLimit(t), name)
	// Windows may keep even administrators from starting a service of its own.
	wantCode(t, "start what runs", err, winerr.ServiceAlreadyRunning, winerr.AccessDenied)
}

func TestLocal_ActiveDependents(t *testing.T) {
	names, err := machine.ActiveDependents(timeLimit(t), anyService(t))
	skipOnWine(t, err, winerr.NotSupported)
	require.NoError(t, err)
	for _, name := range names {
		if status, err := machine.ServiceStatus(timeLimit(t), name); err != nil || status.State == win.ServiceStopped {
			t.Errorf("%s: %+v, %v, want it active", name, status, err)
		}
	}
	if len(names) == 0 && !onWine() {
		t.Error("nothing depends on RPC")
	}
	t.Logf("%q", names)
}

func TestLocal_ServiceMissing(t *testing.T) {
	_, config := machine.ServiceConfig(timeLimit(t), noService)
	_, status := machine.ServiceStatus(timeLimit(t), noService)
	_, dependents := machine.ActiveDependents(timeLimit(t), noService)
	for call, err := range map[string]error{
		"ServiceConfig": config, "ServiceStatus": status, "ActiveDependents": dependents,
		"StartService": machine.StartService(timeLimit(t), noService),
		"StopService":  machine.StopService(timeLimit(t), noService),
	} {
		wantCode(t, call, err, winerr.ServiceDoesNotExist)
	}
	// A name with a NUL would be cut there, and mean another service.
	_, err := machine.ServiceStatus(timeLimit(t), anyService(t)+"\x00x")
	wantCode(t, "with a NUL", err, winerr.InvalidName)
}
