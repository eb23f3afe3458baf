package serve_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	systemv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	systemclient "github.com/kubernetes-csi/csi-proxy/client/groups/system/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestConformance_System runs the suite through the one version's client.
func TestConformance_System(t *testing.T) {
	hosttest.System(t, func(t *testing.T) hosttest.SystemNode {
		t.Helper()
		serial := "WINSIM-NODE-1"
		return hosttest.SystemNode{
			API:     remoteSystem{dialSystem(t, nodeWithServices(t), "*")},
			Serial:  &serial,
			Service: "vds",
			Known: system.GetServiceResponse{
				DisplayName: "Virtual Disk",
				StartType:   system.START_TYPE_MANUAL,
				Status:      system.SERVICE_STATUS_STOPPED,
			},
			Needed: "Base", Dependent: "Top",
			Disabled: "Off", Failing: "Crash", Stubborn: "Stubborn",
			Forbidden: map[string]string{"itself": "csi-proxy", "kubelet": "kubelet", "containers": "containerd", "RPC": "RpcSs"},
			Blocked:   "nsi",
			Missing:   "Missing",
		}
	})
}

func nodeWithServices(t *testing.T) *winsim.Node {
	t.Helper()
	model := winsim.Default()
	model.Services = append(model.Services,
		winsim.Service{Name: "Base", StopTime: time.Second},
		winsim.Service{Name: "Top", DependsOn: []string{"Base"}, StartTime: 5 * time.Second},
		winsim.Service{Name: "Off", StartType: winsim.StartDisabled},
		winsim.Service{Name: "Crash", StartTime: time.Second, ExitCode: 1067},
		winsim.Service{Name: "Stubborn", StartType: winsim.StartAutomatic, RefusesStop: true},
	)
	node, err := winsim.New(model)
	must(t, err)
	return node
}

// dialSystem serves a node, limited to these services, or to the daemon's own list if there
// are none.
func dialSystem(t *testing.T, node *winsim.Node, allowed ...string) *systemclient.Client {
	t.Helper()
	dir := runWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"system"}, AllowedServices: allowed}})
	client, err := systemclient.NewClientWithPipePath(endpointPath(dir, "system", "v1alpha1"))
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// remoteSystem makes the group's Interface of the client.
type remoteSystem struct{ client *systemclient.Client }

func standard(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", standardErrors[status.Code(err)], err)
}

func (r remoteSystem) GetBIOSSerialNumber(ctx context.Context, _ *system.GetBIOSSerialNumberRequest) (*system.GetBIOSSerialNumberResponse, error) {
	out, err := r.client.GetBIOSSerialNumber(ctx, &systemv1alpha1.GetBIOSSerialNumberRequest{})
	return &system.GetBIOSSerialNumberResponse{SerialNumber: out.GetSerialNumber()}, standard(err)
}

func (r remoteSystem) GetService(ctx context.Context, in *system.GetServiceRequest) (*system.GetServiceResponse, error) {
	out, err := r.client.GetService(ctx, &systemv1alpha1.GetServiceRequest{Name: in.Name})
	return &system.GetServiceResponse{
		DisplayName: out.GetDisplayName(),
		StartType:   system.StartType(out.GetStartType()),
		Status:      system.ServiceStatus(out.GetStatus()),
	}, standard(err)
}

func (r remoteSystem) StartService(ctx context.Context, in *system.StartServiceRequest) (*system.StartServiceResponse, error) {
	_, err := r.client.StartService(ctx, &systemv1alpha1.StartServiceRequest{Name: in.Name})
	return &system.StartServiceResponse{}, standard(err)
}

func (r remoteSystem) StopService(ctx context.Context, in *system.StopServiceRequest) (*system.StopServiceResponse, error) {
	_, err := r.client.StopService(ctx, &systemv1alpha1.StopServiceRequest{Name: in.Name, Force: in.Force})
	return &system.StopServiceResponse{}, standard(err)
}

// TestSystem_DefaultList: without any configuration the daemon starts and stops what
// storage needs, and nothing else.
func TestSystem_DefaultList(t *testing.T) {
	node := nodeWithServices(t)
	client := dialSystem(t, node)
	stop := func(name string, force bool) codes.Code {
		_, err := client.StopService(t.Context(), &systemv1alpha1.StopServiceRequest{Name: name, Force: force})
		return status.Code(err)
	}
	for _, name := range []string{"MSiSCSI", "msiscsi", "vds", "smphost", "defragsvc"} {
		_, err := client.StartService(t.Context(), &systemv1alpha1.StartServiceRequest{Name: name})
		if err != nil || stop(name, false) != codes.OK {
			t.Errorf("%s: %v, want that it starts and stops", name, err)
		}
	}
	for _, name := range []string{"Stubborn", "Base", "nsi", "kubelet", "KUBELET", "RpcSs", "csi-proxy", "Missing"} {
		for _, force := range []bool{false, true} {
			if code := stop(name, force); code != codes.PermissionDenied {
				t.Errorf("stop %s, force %v: %v, want %v", name, force, code, codes.PermissionDenied)
			}
		}
		if _, err := client.StartService(t.Context(), &systemv1alpha1.StartServiceRequest{Name: name}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("start %s: %v, want %v", name, err, codes.PermissionDenied)
		}
	}
	// It is allowed, but SessionEnv depends on it, which is not.
	if code := stop("LanmanWorkstation", false); code != codes.FailedPrecondition {
		t.Errorf("stop LanmanWorkstation: %v", code)
	}
	if code := stop("LanmanWorkstation", true); code != codes.PermissionDenied {
		t.Errorf("stop LanmanWorkstation by force: %v", code)
	}
	// Questions are free.
	if _, err := client.GetService(t.Context(), &systemv1alpha1.GetServiceRequest{Name: "kubelet"}); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"LanmanWorkstation", "SessionEnv", "Stubborn", "kubelet", "RpcSs", "csi-proxy"} {
		if info, err := node.ServiceInfo(name); err != nil || info.State != winsim.ServiceRunning {
			t.Errorf("%s is %+v, %v, want it running", name, info, err)
		}
	}
}
