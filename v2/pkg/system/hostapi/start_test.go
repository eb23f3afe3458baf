package api_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// change is a service that is started or stopped, and what comes of it.
type change struct {
	service winsim.Service
	kind    error
	words   string
	took    time.Duration
	calls   int // how often Windows is asked
}

func (c change) check(t *testing.T, call string, then winsim.ServiceState, do func(systemapi.HostAPI) error) {
	t.Helper()
	c.service.Name = "Service"
	node := newNode(t, c.service)
	begin := node.Now()
	err := do(systemapi.NewOn(node))
	if took := node.Now().Sub(begin); took != c.took {
		t.Errorf("it took %v, want %v", took, c.took)
	}
	if (err == nil) != (c.kind == nil) || (err != nil && (!errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words))) {
		t.Errorf("%v, want %v with %q", err, c.kind, c.words)
	}
	if got := node.Calls()[call]; got != c.calls {
		t.Errorf("%s was called %d times, want %d", call, got, c.calls)
	}
	if c.kind == nil {
		wantState(t, node, then, "Service")
	}
}

func TestStart(t *testing.T) {
	for name, c := range map[string]change{
		"stopped":                 {service: winsim.Service{StartTime: time.Second}, took: time.Second, calls: 1},
		"runs at once":            {service: winsim.Service{}, calls: 1},
		"running":                 {service: winsim.Service{State: winsim.ServiceRunning}},
		"starting":                {service: winsim.Service{State: winsim.ServiceStartPending, StartTime: time.Second}, took: time.Second},
		"stopping":                {service: winsim.Service{State: winsim.ServiceStopPending, StopTime: time.Second, StartTime: time.Second}, took: 2 * time.Second, calls: 1},
		"paused":                  {service: winsim.Service{State: winsim.ServicePaused}, kind: winerr.InUse, words: "paused"},
		"disabled":                {service: winsim.Service{StartType: winsim.StartDisabled}, kind: winerr.InUse, words: "1058", calls: 1},
		"without its program":     {service: winsim.Service{StartCode: 2}, kind: winerr.InUse, words: "program", calls: 1},
		"ends with an error":      {service: winsim.Service{StartTime: time.Second, ExitCode: 1067}, kind: winerr.InUse, words: "1067", took: time.Second, calls: 1},
		"ends with its own error": {service: winsim.Service{ExitCode: 1066, SpecificExitCode: 42}, kind: winerr.InUse, words: "number 42 (0x2a)", calls: 1},
		"was starting, and ends":  {service: winsim.Service{State: winsim.ServiceStartPending, StartTime: time.Second, ExitCode: 5}, kind: winerr.InUse, words: "it stopped again: access is denied (Windows error 5)", took: time.Second},
		"hangs":                   {service: winsim.Service{StartTime: time.Hour}, kind: winerr.Deadline, words: "after 30s it is still start pending", took: 30 * time.Second, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t, "StartService", winsim.ServiceRunning, func(h systemapi.HostAPI) error { return h.StartService("SERVICE") })
		})
	}
}

// TestStart_OrdinaryEnd: a service may end by itself without calling that an error.
func TestStart_OrdinaryEnd(t *testing.T) {
	node := newNode(t, winsim.Service{Name: "Service", StartTime: time.Minute})
	inject(t, node, winsim.Fault{Call: "ServiceStatus", Nth: 3, Do: func(n *winsim.Node) { _ = n.SetServiceState("Service", winsim.ServiceStopped) }})
	err := systemapi.NewOn(node).StartService("Service")
	if !errors.Is(err, winerr.InUse) || !strings.Contains(err.Error(), "without an error") {
		t.Error(err)
	}
}

// TestStart_Pauses: the service says how long it needs, and a tenth of it is waited.
func TestStart_Pauses(t *testing.T) {
	for needs, looks := range map[time.Duration]int{
		200 * time.Millisecond: 2 + 2,  // 100 ms at least
		5 * time.Second:        2 + 10, // a tenth
		25 * time.Second:       2 + 13, // 2 s at most
	} {
		node := newNode(t, winsim.Service{Name: "Service", StartTime: needs})
		must(t, systemapi.NewOn(node).StartService("Service"))
		if want := (map[string]int{"StartService": 1, "ServiceStatus": looks}); !maps.Equal(node.Calls(), want) {
			t.Errorf("a service that needs %v: calls %v, want %v", needs, node.Calls(), want)
		}
	}
}

// TestStart_Deadline: the caller's deadline replaces the default limit.
func TestStart_Deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]error{2 * time.Minute: nil, 10 * time.Second: context.DeadlineExceeded} {
			node := newNode(t, winsim.Service{Name: "Service", StartTime: time.Minute})
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			host := bind(ctx, systemapi.NewOn(node))
			if err := host.StartService("Service"); !errors.Is(err, want) {
				t.Errorf("within %v: %v, want %v", limit, err, want)
			}
		}
	})
}

// TestStart_Repeated: the next call goes on where the first one gave up.
func TestStart_Repeated(t *testing.T) {
	node := newNode(t, winsim.Service{Name: "Service", StartTime: 50 * time.Second})
	host := systemapi.NewOn(node)
	if err := host.StartService("Service"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	must(t, host.StartService("Service"))
	if got := node.Calls()["StartService"]; got != 1 {
		t.Errorf("Windows was asked %d times to start it", got)
	}
}

// TestStart_StartedConcurrently: another process starts it between our query and our call.
func TestStart_StartedConcurrently(t *testing.T) {
	node := newNode(t, winsim.Service{Name: "Service", StartTime: time.Second})
	fault := inject(t, node, winsim.Fault{Call: "StartService", Times: 1, Do: func(n *winsim.Node) { _ = n.SetServiceState("Service", winsim.ServiceStartPending) }})
	must(t, systemapi.NewOn(node).StartService("Service"))
	wantState(t, node, winsim.ServiceRunning, "Service")
	if fault.Hits() != 1 {
		t.Errorf("%d calls", fault.Hits())
	}
}

func TestStart_Dependencies(t *testing.T) {
	services := family()
	for i := range services {
		services[i].StartType = winsim.StartManual
	}
	node := newNode(t, services...)
	must(t, systemapi.NewOn(node).StartService("top"))
	wantState(t, node, winsim.ServiceRunning, "base", "middle", "top")

	services[0].ExitCode = 1067
	node = newNode(t, services...)
	err := systemapi.NewOn(node).StartService("top")
	if !errors.Is(err, winerr.InUse) || winerr.CodeOf(err) != winerr.ServiceDependencyFail {
		t.Errorf("with one that fails: %v", err)
	}
	wantState(t, node, winsim.ServiceStopped, "base", "middle", "top")
}

func TestGetService_StrangeNumbers(t *testing.T) {
	s := strange{Node: newNode(t)}
	s.config.StartType, s.status.State = 9, 77
	got, err := systemapi.NewOn(s).GetService("x")
	if err != nil || got.StartType != "9" || got.Status != "77" {
		t.Errorf("%+v, %v", got, err)
	}
	// An unknown state is waited for, but not for ever.
	if err := systemapi.NewOn(s).StartService("x"); !errors.Is(err, winerr.Deadline) || !strings.Contains(err.Error(), "77") {
		t.Error(err)
	}
}
