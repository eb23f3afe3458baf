//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/kubernetes-csi/csi-proxy/client"
	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	systemclient "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
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
	c, err := systemclient.New(t.Context(), client.WithWait())
	require.NoError(t, err)
	defer c.Close()
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
			API:       machine{c},
			Service:   play("plain", mgr.Config{StartType: mgr.StartManual, DisplayName: "A service of a test"}),
			Known:     system.GetServiceResponse{DisplayName: "A service of a test", StartType: system.START_TYPE_MANUAL, Status: system.SERVICE_STATUS_STOPPED},
			Disabled:  play("disabled", mgr.Config{StartType: mgr.StartDisabled}),
			Failing:   play("failing", mgr.Config{StartType: mgr.StartManual}),
			Forbidden: map[string]string{"RPC": "RpcSs"},
			Missing:   "no-such-service",
		}
	})
}

func TestSystem_BIOSSerialNumber(t *testing.T) {
	start(t)
	c, err := systemclient.New(t.Context(), client.WithWait())
	require.NoError(t, err)
	defer c.Close()
	if _, err := c.GetBIOSSerialNumber(t.Context(), &systemv1alpha1.GetBIOSSerialNumberRequest{}); err != nil {
		t.Error(err)
	}
}

// machine makes the group's Interface of the client.
type machine struct{ client *systemclient.Client }

func (m machine) GetBIOSSerialNumber(ctx context.Context, _ *system.GetBIOSSerialNumberRequest) (*system.GetBIOSSerialNumberResponse, error) {
	out, err := m.client.GetBIOSSerialNumber(ctx, &systemv1alpha1.GetBIOSSerialNumberRequest{})
	return &system.GetBIOSSerialNumberResponse{SerialNumber: out.GetSerialNumber()}, standard(err)
}

func (m machine) GetService(ctx context.Context, in *system.GetServiceRequest) (*system.GetServiceResponse, error) {
	out, err := m.client.GetService(ctx, &systemv1alpha1.GetServiceRequest{Name: in.Name})
	return &system.GetServiceResponse{
		DisplayName: out.GetDisplayName(),
		StartType:   system.StartType(out.GetStartType()),
		Status:      system.ServiceStatus(out.GetStatus()),
	}, standard(err)
}

func (m machine) StartService(ctx context.Context, in *system.StartServiceRequest) (*system.StartServiceResponse, error) {
	_, err := m.client.StartService(ctx, &systemv1alpha1.StartServiceRequest{Name: in.Name})
	return &system.StartServiceResponse{}, standard(err)
}

func (m machine) StopService(ctx context.Context, in *system.StopServiceRequest) (*system.StopServiceResponse, error) {
	_, err := m.client.StopService(ctx, &systemv1alpha1.StopServiceRequest{Name: in.Name, Force: in.Force})
	return &system.StopServiceResponse{}, standard(err)
}
