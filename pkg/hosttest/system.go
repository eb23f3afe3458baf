package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
)

// SystemNode is a node under test. Fields that cannot be had stay empty; the cases that
// need them are skipped.
type SystemNode struct {
	// API is what is tested. Its errors must match those of io/fs, and ErrConflict.
	API system.Interface

	// Serial is the serial number of the machine.
	Serial *string
	// Service can be started and stopped, and is stopped. Nothing else has to do with it.
	// Known is what GetService says of it then.
	Service string
	Known   system.GetServiceResponse
	// Needed and Dependent can be started and stopped, and are stopped; the second
	// depends on the first.
	Needed, Dependent string
	// Disabled is a service that is disabled, Failing one that stops with an error while
	// it is starting, Stubborn one that runs and does not accept a stop.
	Disabled, Failing, Stubborn string
	// Forbidden are services that the API must neither start nor stop, by a name for why.
	Forbidden map[string]string
	// Blocked can be stopped as far as the API is concerned, but one of Forbidden depends
	// on it, and both run.
	Blocked string
	// Missing is a name that no service has.
	Missing string
}

// System runs the cases of the system group. newNode is called once per case.
func System(t *testing.T, newNode func(t *testing.T) SystemNode) {
	t.Helper()
	for _, c := range systemCases {
		t.Run(c.name, func(t *testing.T) { c.run(&systemNode{SystemNode: newNode(t), t: t}) })
	}
}

// systemNode gives the cases short names for the calls.
type systemNode struct {
	SystemNode
	t *testing.T
}

func (n *systemNode) ctx() context.Context { return n.t.Context() }

func (n *systemNode) need(what, name string) {
	n.t.Helper()
	if name == "" {
		n.t.Skipf("this node has no %s", what)
	}
}

func (n *systemNode) start(name string) error {
	_, err := n.API.StartService(n.ctx(), &system.StartServiceRequest{Name: name})
	return err
}

func (n *systemNode) stop(name string, force bool) error {
	_, err := n.API.StopService(n.ctx(), &system.StopServiceRequest{Name: name, Force: force})
	return err
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

var systemCases = []struct {
	name string
	run  func(*systemNode)
}{
	{"GetBIOSSerialNumber tells the serial number", func(n *systemNode) {
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
	{"GetService describes a service", func(n *systemNode) {
		n.need("service", n.Service)
		for _, name := range []string{n.Service, strings.ToUpper(n.Service), strings.ToLower(n.Service)} {
			if got := n.get(name); *got != n.Known {
				n.t.Errorf("%s: %+v, want %+v", name, *got, n.Known)
			}
		}
	}},
	{"StartService and StopService, each twice", func(n *systemNode) {
		n.need("service", n.Service)
		for _, name := range []string{n.Service, strings.ToUpper(n.Service)} {
			for _, force := range []bool{false, true} {
				twice(n.t, "start", func() error { return n.start(name) })
				n.want(system.SERVICE_STATUS_RUNNING, n.Service)
				twice(n.t, "stop", func() error { return n.stop(name, force) })
				n.want(system.SERVICE_STATUS_STOPPED, n.Service)
			}
		}
	}},
	{"StartService starts what a service depends on", func(n *systemNode) {
		n.need("dependent service", n.Dependent)
		twice(n.t, "start", func() error { return n.start(n.Dependent) })
		n.want(system.SERVICE_STATUS_RUNNING, n.Needed, n.Dependent)
		twice(n.t, "start", func() error { return n.start(n.Needed) })
	}},
	{"StopService without force spares those that depend on a service", func(n *systemNode) {
		n.need("dependent service", n.Dependent)
		if err := n.start(n.Dependent); err != nil {
			n.t.Fatal(err)
		}
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
	{"StopService with force stops those that depend on a service", func(n *systemNode) {
		n.need("dependent service", n.Dependent)
		if err := n.start(n.Dependent); err != nil {
			n.t.Fatal(err)
		}
		twice(n.t, "stop", func() error { return n.stop(n.Needed, true) })
		n.want(system.SERVICE_STATUS_STOPPED, n.Needed, n.Dependent)
	}},
	{"a disabled service does not start", func(n *systemNode) {
		n.need("disabled service", n.Disabled)
		wantError(n.t, "start", n.start(n.Disabled), ErrConflict)
		if got := n.get(n.Disabled); got.StartType != system.START_TYPE_DISABLED || got.Status != system.SERVICE_STATUS_STOPPED {
			n.t.Errorf("%+v, want it disabled and stopped", *got)
		}
		twice(n.t, "stop", func() error { return n.stop(n.Disabled, false) })
	}},
	{"a service that fails to start is an error, again and again", func(n *systemNode) {
		n.need("failing service", n.Failing)
		for range 2 {
			wantError(n.t, "start", n.start(n.Failing), ErrConflict)
		}
		n.want(system.SERVICE_STATUS_STOPPED, n.Failing)
	}},
	{"a service that does not accept a stop goes on", func(n *systemNode) {
		n.need("stubborn service", n.Stubborn)
		for _, force := range []bool{false, true} {
			wantError(n.t, "stop", n.stop(n.Stubborn, force), ErrConflict)
		}
		n.want(system.SERVICE_STATUS_RUNNING, n.Stubborn)
	}},
	{"forbidden services are left alone", func(n *systemNode) {
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
	{"StopService with force spares forbidden services", func(n *systemNode) {
		n.need("service on which a forbidden one depends", n.Blocked)
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
	{"a service that is not there", func(n *systemNode) {
		n.need("name without a service", n.Missing)
		_, err := n.API.GetService(n.ctx(), &system.GetServiceRequest{Name: n.Missing})
		wantError(n.t, "get", err, fs.ErrNotExist)
		// Whether it may be started is asked first.
		for what, err := range map[string]error{"start": n.start(n.Missing), "stop": n.stop(n.Missing, false), "stop with force": n.stop(n.Missing, true)} {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
				n.t.Errorf("%s: %v, want that it is not there, or not allowed", what, err)
			}
		}
	}},
	{"names that no service can have", func(n *systemNode) {
		for what, name := range map[string]string{
			"nothing": "", "a NUL": "a\x00b", "a line feed": "a\nb", "a path": `..\a`, "a slash": "a/b", "a long one": strings.Repeat("x", 257),
		} {
			_, err := n.API.GetService(n.ctx(), &system.GetServiceRequest{Name: name})
			wantError(n.t, "get "+what, err, fs.ErrInvalid)
			wantError(n.t, "start "+what, n.start(name), fs.ErrInvalid)
			wantError(n.t, "stop "+what, n.stop(name, true), fs.ErrInvalid)
		}
	}},
	{"concurrent calls on one service all succeed", func(n *systemNode) {
		n.need("service", n.Service)
		for _, call := range []func() error{
			func() error { return n.start(n.Service) },
			func() error { return n.stop(n.Service, false) },
		} {
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() {
					if err := call(); err != nil {
						n.t.Error(err)
					}
				})
			}
			callers.Wait()
		}
		n.want(system.SERVICE_STATUS_STOPPED, n.Service)
	}},
}
