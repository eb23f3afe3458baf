package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestStop(t *testing.T) {
	for name, c := range map[string]change{
		"running":             {service: winsim.Service{State: winsim.ServiceRunning, StopTime: time.Second}, took: time.Second, calls: 1},
		"stops at once":       {service: winsim.Service{State: winsim.ServiceRunning}, calls: 1},
		"stopped":             {},
		"disabled":            {service: winsim.Service{StartType: winsim.StartDisabled}},
		"stopping":            {service: winsim.Service{State: winsim.ServiceStopPending, StopTime: time.Second}, took: time.Second},
		"paused":              {service: winsim.Service{State: winsim.ServicePaused}, calls: 1},
		"starting":            {service: winsim.Service{State: winsim.ServiceStartPending, StartTime: time.Second}, took: time.Second, calls: 11},
		"starting, and fails": {service: winsim.Service{State: winsim.ServiceStartPending, StartTime: time.Second, ExitCode: 5}, took: time.Second, calls: 10},
		"refuses":             {service: winsim.Service{State: winsim.ServiceRunning, RefusesStop: true}, kind: winerr.InUse, words: "1052", calls: 1},
		"hangs":               {service: winsim.Service{State: winsim.ServiceRunning, StopTime: time.Hour}, kind: winerr.Deadline, words: "still stop pending", took: 30 * time.Second, calls: 1},
		"never starts":        {service: winsim.Service{State: winsim.ServiceStartPending, StartTime: time.Hour}, kind: winerr.Deadline, words: "still start pending", took: 30 * time.Second, calls: 16},
	} {
		for _, force := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				c.check(t, "StopService", winsim.ServiceStopped, func(h systemapi.HostAPI) error { return h.StopService("SERVICE", force) })
			})
		}
	}
}

// TestStop_Starting: a service that starts refuses to stop in one of two ways, and is asked again until it runs.
func TestStop_Starting(t *testing.T) {
	for _, code := range []winerr.Code{winerr.InvalidServiceControl, winerr.ServiceCannotAcceptCtrl} {
		node := newNode(t, winsim.Service{Name: "Service", State: winsim.ServiceStartPending, StartTime: time.Second})
		inject(t, node, winsim.Fault{Call: "StopService", Times: 3, Error: uint32(code)})
		must(t, systemapi.NewOn(node).StopService("Service", false))
		wantState(t, node, winsim.ServiceStopped, "Service")
	}
}

func TestStop_Dependents(t *testing.T) {
	node := newNode(t, family()...)
	host := systemapi.NewOn(node)
	err := host.StopService("base", false)
	if !errors.Is(err, winerr.InUse) || winerr.CodeOf(err) != winerr.DependentServicesRunning || !strings.Contains(err.Error(), ": top, middle; ") {
		t.Errorf("%v, want both named in their order", err)
	}
	wantState(t, node, winsim.ServiceRunning, "base", "middle", "top")
	must(t, host.StopService("middle", true))
	wantState(t, node, winsim.ServiceRunning, "base")
	wantState(t, node, winsim.ServiceStopped, "middle", "top")
	must(t, host.StartService("top"))
	must(t, host.StopService("base", true))
	wantState(t, node, winsim.ServiceStopped, "base", "middle", "top")
}

// TestStop_DependentsGo lets the dependents stop by themselves, after they were in the way.
func TestStop_DependentsGo(t *testing.T) {
	for _, force := range []bool{false, true} {
		node := newNode(t, family()...)
		inject(t, node, winsim.Fault{Call: "ActiveDependents", Do: func(n *winsim.Node) {
			_ = n.SetServiceState("top", winsim.ServiceStopped)
			_ = n.SetServiceState("middle", winsim.ServiceStopped)
		}})
		must(t, systemapi.NewOn(node).StopService("base", force))
		wantState(t, node, winsim.ServiceStopped, "base")
	}
}

// TestStop_DependentsComeBack starts a dependent again as soon as it has stopped.
func TestStop_DependentsComeBack(t *testing.T) {
	for times, want := range map[int]error{1: nil, 2: nil, 0: winerr.Busy} { // 0: always
		node := newNode(t, family()...)
		back := inject(t, node, winsim.Fault{Call: "StopService", Object: "base", Nth: 2, Times: times, Do: func(n *winsim.Node) {
			_ = n.SetServiceState("top", winsim.ServiceRunning)
			_ = n.SetServiceState("middle", winsim.ServiceRunning)
		}})
		err := systemapi.NewOn(node).StopService("base", true)
		if (err == nil) != (want == nil) || (err != nil && (!errors.Is(err, want) || !strings.Contains(err.Error(), "top, middle"))) {
			t.Errorf("back %d times: %v, want %v", times, err, want)
		}
		if want == nil {
			wantState(t, node, winsim.ServiceStopped, "base", "middle", "top")
		} else if back.Hits() != 3 {
			t.Errorf("they came back %d times, want that it is tried 3 times", back.Hits())
		}
	}
}

// TestStop_NewDependent: one more appears while the dependents are being stopped.
func TestStop_NewDependent(t *testing.T) {
	node := newNode(t, family()...)
	inject(t, node, winsim.Fault{Call: "StopService", Object: "middle", Times: 1, Do: func(n *winsim.Node) {
		if err := n.Add(winsim.Model{Services: []winsim.Service{{Name: "new", DependsOn: []string{"middle"}, State: winsim.ServiceRunning}}}); err != nil {
			t.Error(err)
		}
	}})
	must(t, systemapi.NewOn(node).StopService("base", true))
	wantState(t, node, winsim.ServiceStopped, "base", "middle", "top", "new")
}

// TestStop_DependentFails names the one that is to blame.
func TestStop_DependentFails(t *testing.T) {
	services := family()
	services[2].RefusesStop = true
	node := newNode(t, services...)
	err := systemapi.NewOn(node).StopService("base", true)
	if !errors.Is(err, winerr.InUse) || !strings.HasPrefix(err.Error(), "stop service base: top, which depends on it: ") {
		t.Error(err)
	}
	wantState(t, node, winsim.ServiceRunning, "base", "middle", "top")
}

// TestStop_WaitsInAll: the limit is for the call, not for each service.
func TestStop_WaitsInAll(t *testing.T) {
	services := family()
	for i := range services {
		services[i].StopTime = 14 * time.Second
	}
	node := newNode(t, services...)
	begin, host := node.Now(), systemapi.NewOn(node)
	if err := host.StopService("base", true); !errors.Is(err, winerr.Deadline) {
		t.Error(err)
	}
	if took := node.Now().Sub(begin); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	must(t, host.StopService("base", true)) // goes on from there
}
