package hosttest

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
)

// SystemNode is a node under test. Leave fields empty that the node does not have; the suite
// skips the cases that need them.
type SystemNode struct {
	// API is the implementation under test. Its errors must match those of io/fs, and
	// ErrConflict.
	API system.Interface

	// Serial is the serial number of the machine.
	Serial *string
	// Service is a stopped service without dependencies that can be started and stopped. Known
	// is the answer of GetService while it is stopped.
	Service string
	Known   system.GetServiceResponse
	// Needed and Dependent are stopped services that can be started and stopped; Dependent
	// depends on Needed.
	Needed, Dependent string
	// Disabled is a disabled service. Failing stops with an error during its start. Stubborn
	// runs and refuses to stop.
	Disabled, Failing, Stubborn string
	// Forbidden are services that the API must refuse to start and stop, by the reason.
	Forbidden map[string]string
	// Blocked is a running service that the API may stop, but a running service of Forbidden
	// depends on it.
	Blocked string
	// Missing is a name that no service has.
	Missing string
}

// System runs the cases of the system group. newNode is called once per case.
func System(t *testing.T, newNode func(t *testing.T) SystemNode) {
	t.Helper()
	runCases(t, systemCases, func(t *testing.T) (*systemNode, []string) {
		t.Helper()
		n := &systemNode{SystemNode: newNode(t), runner: runner{t}}
		return n, nil
	})
}

// systemNode adds short names for the calls.
type systemNode struct {
	SystemNode
	runner
}

func (n *systemNode) start(name string) error {
	return errOf(n.API.StartService(n.ctx(), &system.StartServiceRequest{Name: name}))
}

func (n *systemNode) stop(name string, force bool) error {
	return errOf(n.API.StopService(n.ctx(), &system.StopServiceRequest{Name: name, Force: force}))
}

func (n *systemNode) get(name string) *system.GetServiceResponse {
	n.t.Helper()
	service, err := n.API.GetService(n.ctx(), &system.GetServiceRequest{Name: name})
	if err != nil {
		n.t.Fatalf("get service %s: %v", name, err)
	}
	return service
}

func (n *systemNode) want(status system.ServiceStatus, names ...string) {
	n.t.Helper()
	for _, name := range names {
		if got := n.get(name).Status; got != status {
			n.t.Errorf("status of %s is %d, want %d", name, got, status)
		}
	}
}

var systemCases = []testCase[*systemNode]{
	{name: "GetBIOSSerialNumber returns the serial number", run: func(n *systemNode) {
		if n.Serial == nil {
			n.t.Skip("the serial number of this node is not known")
		}
		for range 2 {
			got, err := n.API.GetBIOSSerialNumber(n.ctx(), &system.GetBIOSSerialNumberRequest{})
			if err != nil || got.SerialNumber != *n.Serial {
				n.t.Errorf("%+v, %v, want %q", got, err, *n.Serial)
			}
		}
	}},
	{name: "GetService describes a service", run: func(n *systemNode) {
		n.need("service", n.Service != "")
		for _, name := range []string{n.Service, strings.ToUpper(n.Service), strings.ToLower(n.Service)} {
			if got := n.get(name); *got != n.Known {
				n.t.Errorf("%s: %+v, want %+v", name, *got, n.Known)
			}
		}
	}},
	{name: "StartService and StopService, each twice", run: func(n *systemNode) {
		n.need("service", n.Service != "")
		for _, name := range []string{n.Service, strings.ToUpper(n.Service)} {
			for _, force := range []bool{false, true} {
				twice(n.t, "start", func() error { return n.start(name) })
				n.want(system.SERVICE_STATUS_RUNNING, n.Service)
				twice(n.t, "stop", func() error { return n.stop(name, force) })
				n.want(system.SERVICE_STATUS_STOPPED, n.Service)
			}
		}
	}},
	{name: "StartService starts what a service depends on", run: func(n *systemNode) {
		n.need("dependent service", n.Dependent != "")
		twice(n.t, "start", func() error { return n.start(n.Dependent) })
		n.want(system.SERVICE_STATUS_RUNNING, n.Needed, n.Dependent)
		twice(n.t, "start", func() error { return n.start(n.Needed) })
	}},
	{name: "StopService without force spares those that depend on a service", run: func(n *systemNode) {
		n.need("dependent service", n.Dependent != "")
		n.must(n.start(n.Dependent))
		for range 2 {
			err := n.stop(n.Needed, false)
			wantError(n.t, "stop", err, ErrConflict)
			if err != nil && !strings.Contains(err.Error(), n.Dependent) {
				n.t.Errorf("%v, want %s named", err, n.Dependent)
			}
		}
		n.want(system.SERVICE_STATUS_RUNNING, n.Needed, n.Dependent)
		for _, name := range []string{n.Dependent, n.Needed} {
			if err := n.stop(name, false); err != nil {
				n.t.Error(err)
			}
		}
		n.want(system.SERVICE_STATUS_STOPPED, n.Needed, n.Dependent)
	}},
	{name: "StopService with force stops those that depend on a service", run: func(n *systemNode) {
		n.need("dependent service", n.Dependent != "")
		n.must(n.start(n.Dependent))
		twice(n.t, "stop", func() error { return n.stop(n.Needed, true) })
		n.want(system.SERVICE_STATUS_STOPPED, n.Needed, n.Dependent)
	}},
	{name: "a disabled service does not start", run: func(n *systemNode) {
		n.need("disabled service", n.Disabled != "")
		wantError(n.t, "start", n.start(n.Disabled), ErrConflict)
		if got := n.get(n.Disabled); got.StartType != system.START_TYPE_DISABLED || got.Status != system.SERVICE_STATUS_STOPPED {
			n.t.Errorf("%+v, want it disabled and stopped", *got)
		}
		twice(n.t, "stop", func() error { return n.stop(n.Disabled, false) })
	}},
	{name: "a service that fails to start is an error, again and again", run: func(n *systemNode) {
		n.need("failing service", n.Failing != "")
		for range 2 {
			wantError(n.t, "start", n.start(n.Failing), ErrConflict)
		}
		n.want(system.SERVICE_STATUS_STOPPED, n.Failing)
	}},
	{name: "a service that does not accept a stop goes on", run: func(n *systemNode) {
		n.need("stubborn service", n.Stubborn != "")
		for _, force := range []bool{false, true} {
			wantError(n.t, "stop", n.stop(n.Stubborn, force), ErrConflict)
		}
		n.want(system.SERVICE_STATUS_RUNNING, n.Stubborn)
	}},
	{name: "forbidden services are left alone", run: func(n *systemNode) {
		if len(n.Forbidden) == 0 {
			n.t.Skip("this API has no forbidden services")
		}
		for why, name := range n.Forbidden {
			before := *n.get(name)
			for _, name := range []string{name, strings.ToUpper(name)} {
				wantError(n.t, why+": start", n.start(name), fs.ErrPermission)
				for _, force := range []bool{false, true} {
					wantError(n.t, why+": stop", n.stop(name, force), fs.ErrPermission)
				}
			}
			if after := *n.get(name); after != before {
				n.t.Errorf("%s: was %+v, and is %+v", why, before, after)
			}
		}
	}},
	{name: "StopService with force spares forbidden services", run: func(n *systemNode) {
		n.need("service on which a forbidden one depends", n.Blocked != "")
		for range 2 {
			wantError(n.t, "stop without force", n.stop(n.Blocked, false), ErrConflict)
			wantError(n.t, "stop with force", n.stop(n.Blocked, true), fs.ErrPermission)
		}
		n.want(system.SERVICE_STATUS_RUNNING, n.Blocked)
		for _, name := range n.Forbidden {
			if n.get(name).Status == system.SERVICE_STATUS_RUNNING {
				return
			}
		}
		n.t.Error("all forbidden services are stopped")
	}},
	{name: "a service that is not there", run: func(n *systemNode) {
		n.need("name without a service", n.Missing != "")
		_, err := n.API.GetService(n.ctx(), &system.GetServiceRequest{Name: n.Missing})
		wantError(n.t, "get", err, fs.ErrNotExist)
		// The permission is checked first.
		for what, err := range map[string]error{"start": n.start(n.Missing), "stop": n.stop(n.Missing, false), "stop with force": n.stop(n.Missing, true)} {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				n.t.Errorf("%s: %v, want that it is not there, or not allowed", what, err)
			}
		}
	}},
	{name: "names that no service can have", run: func(n *systemNode) {
		for what, name := range map[string]string{
			"nothing": "", "a NUL": "a\x00b", "a line feed": "a\nb", "a path": `..\a`, "a slash": "a/b", "a long one": strings.Repeat("x", 257),
		} {
			_, err := n.API.GetService(n.ctx(), &system.GetServiceRequest{Name: name})
			wantError(n.t, "get "+what, err, fs.ErrInvalid)
			wantError(n.t, "start "+what, n.start(name), fs.ErrInvalid)
			wantError(n.t, "stop "+what, n.stop(name, true), fs.ErrInvalid)
		}
	}},
	{name: "concurrent calls on one service all succeed", run: func(n *systemNode) {
		n.need("service", n.Service != "")
		for _, call := range []func() error{
			func() error { return n.start(n.Service) },
			func() error { return n.stop(n.Service, false) },
		} {
			n.atOnce("call", call)
		}
		n.want(system.SERVICE_STATUS_STOPPED, n.Service)
	}},
}
