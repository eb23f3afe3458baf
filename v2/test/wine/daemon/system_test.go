//go:build windows && wine

package daemon

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
)

// serviceRole is an argument that makes the test binary a service. What kind follows it.
const serviceRole = "-play-service"

func playService(kind string) {
	if err := svc.Run("", playedService(kind)); err != nil {
		panic(err)
	}
}

type playedService string

// Execute is the life of the service.
func (kind playedService) Execute(_ []string, requests <-chan svc.ChangeRequest, statuses chan<- svc.Status) (specific bool, code uint32) {
	statuses <- svc.Status{State: svc.StartPending}
	if kind == "failing" {
		return true, 7
	}
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop}
	statuses <- running
	for request := range requests {
		switch request.Cmd {
		case svc.Interrogate:
			statuses <- running
		case svc.Stop:
			statuses <- svc.Status{State: svc.StopPending}
			return false, 0
		default:
		}
	}
	return false, 0
}

// TestConformance_System runs the suite with services of our own. They depend on nothing:
// Wine does not know dependencies.
func TestConformance_System(t *testing.T) {
	start(t, "-allowed-services=*")
	api := connectAll(t).System()
	executable, err := os.Executable()
	require.NoError(t, err)
	services := 0
	hosttest.System(t, func(t *testing.T) hosttest.SystemNode {
		t.Helper()
		services++
		play := func(kind string, config mgr.Config) string {
			name := fmt.Sprintf("played-%s-%d", kind, services)
			install(t, name, config, executable, serviceRole, kind)
			return name
		}
		return hosttest.SystemNode{
			API:       api,
			Service:   play("plain", mgr.Config{StartType: mgr.StartManual, DisplayName: "A service of a test"}),
			Known:     system.GetServiceResponse{DisplayName: "A service of a test", StartType: system.START_TYPE_MANUAL, Status: system.SERVICE_STATUS_STOPPED},
			Disabled:  play("disabled", mgr.Config{StartType: mgr.StartDisabled}),
			Failing:   play("failing", mgr.Config{StartType: mgr.StartManual}),
			Forbidden: map[string]string{"RPC": "RpcSs"},
			Missing:   "no-such-service",
		}
	})
}
