package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/servicelist"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// newNode is a node with these services and no others.
func newNode(t testing.TB, services ...winsim.Service) *winsim.Node {
	t.Helper()
	node, err := winsim.New(winsim.Model{Firmware: winsim.Firmware{Serial: "serial"}, Services: services})
	must(t, err)
	return node
}

// family is a service, one that depends on it, and one that depends on that; all run.
func family() []winsim.Service {
	return []winsim.Service{
		{Name: "base", StartType: winsim.StartAutomatic, StartTime: time.Second, StopTime: time.Second},
		{Name: "middle", StartType: winsim.StartAutomatic, DependsOn: []string{"base"}, StartTime: time.Second, StopTime: time.Second},
		{Name: "top", StartType: winsim.StartAutomatic, DependsOn: []string{"middle"}, StartTime: time.Second, StopTime: time.Second},
	}
}

func inject(t testing.TB, node *winsim.Node, f winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(f)
	must(t, err)
	t.Cleanup(injection.Remove)
	return injection
}

var must = require.NoError

func wantState(t testing.TB, node *winsim.Node, want winsim.ServiceState, names ...string) {
	t.Helper()
	for _, name := range names {
		if info, err := node.ServiceInfo(name); err != nil || info.State != want {
			t.Errorf("%s is %s, %v, want it %s", name, info.State, err, want)
		}
	}
}

// bind gives a host the context of a caller.
func bind(ctx context.Context, host systemapi.HostAPI) systemapi.HostAPI {
	return host.(systemapi.Extended).WithContext(ctx)
}

// limited gives a host a list, as package system does.
func limited(t testing.TB, host systemapi.HostAPI, names ...string) systemapi.HostAPI {
	t.Helper()
	list, err := servicelist.New(names)
	must(t, err)
	return host.(systemapi.Extended).OnlyServices(list)
}

// strange is a node whose services say what no emulated one would.
type strange struct {
	*winsim.Node
	config win.ServiceConfig
	status win.ServiceStatus
}

func (s strange) ServiceConfig(context.Context, string) (win.ServiceConfig, error) {
	return s.config, nil
}

func (s strange) ServiceStatus(context.Context, string) (win.ServiceStatus, error) {
	return s.status, nil
}
