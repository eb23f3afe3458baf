package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestFailure: each code has its kind, its number and a way out.
func TestFailure(t *testing.T) {
	for _, c := range []struct {
		call  string
		code  winerr.Code
		kind  winerr.Kind
		words string
	}{
		{"ServiceStatus", winerr.ServiceDoesNotExist, winerr.NotFound, "short name"},
		{"ServiceStatus", winerr.AccessDenied, winerr.Denied, "LocalSystem"},
		{"ServiceStatus", winerr.ShutdownInProgress, winerr.Unavailable, "again"},
		{"StartService", winerr.ServiceDisabled, winerr.InUse, "start type"},
		{"StartService", winerr.ServiceDependencyFail, winerr.InUse, "event log"},
		{"StartService", winerr.ServiceDependencyDeleted, winerr.InUse, "install"},
		{"StartService", winerr.ServiceLogonFailed, winerr.InUse, "account"},
		{"StartService", winerr.ServiceRequestTimeout, winerr.Deadline, "event log"},
		{"StartService", winerr.ServiceMarkedForDelete, winerr.InUse, "restart the node"},
		{"StartService", winerr.ServiceDatabaseLocked, winerr.Busy, "locked"},
		{"StartService", winerr.FileNotFound, winerr.InUse, "program"},
		{"StartService", winerr.PathNotFound, winerr.InUse, "program"},
		{"StartService", 14001, winerr.Internal, "14001"},
		{"StopService", winerr.InvalidServiceControl, winerr.InUse, "cannot be stopped"},
		{"StopService", winerr.ServiceRequestTimeout, winerr.Deadline, "event log"},
		{"ActiveDependents", winerr.AccessDenied, winerr.Denied, "LocalSystem"},
	} {
		node := newNode(t, family()...)
		inject(t, node, winsim.Fault{Call: c.call, Error: uint32(c.code)})
		host := systemapi.NewOn(node)
		err := host.StopService("base", true)
		if c.call == "StartService" {
			must(t, node.SetServiceState("base", winsim.ServiceStopped))
			err = host.StartService("base")
		}
		if winerr.KindOf(err) != c.kind || winerr.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.words) ||
			!strings.Contains(err.Error(), fmt.Sprint(uint32(c.code))) || !strings.Contains(err.Error(), "base") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s fails with %d: %v of kind %v, want kind %v and %q", c.call, uint32(c.code), err, winerr.KindOf(err), c.kind, c.words)
		}
	}
}

// changes are the operations for the sweeps.
var changes = map[string]struct {
	before winsim.ServiceState // of all
	do     func(systemapi.HostAPI) error
	after  winsim.ServiceState
}{
	"start": {winsim.ServiceStopped, func(h systemapi.HostAPI) error { return h.StartService("top") }, winsim.ServiceRunning},
	"stop":  {winsim.ServiceRunning, func(h systemapi.HostAPI) error { return h.StopService("base", true) }, winsim.ServiceStopped},
}

func inState(t *testing.T, state winsim.ServiceState) *winsim.Node {
	t.Helper()
	services := family()
	for i := range services {
		services[i].State = state
	}
	return newNode(t, services...)
}

// TestSweep_Fails fails every call of every change in turn, once and from there on. When
// the trouble is over a retry must succeed.
func TestSweep_Fails(t *testing.T) {
	for name, c := range changes {
		for _, code := range []winerr.Code{
			winerr.AccessDenied, winerr.ServiceDoesNotExist, winerr.ServiceRequestTimeout, winerr.ServiceCannotAcceptCtrl,
			winerr.ServiceAlreadyRunning, winerr.ServiceNotActive, winerr.DependentServicesRunning, winerr.InvalidServiceControl,
		} {
			for _, times := range []int{1, 0} { // 0: from there on
				t.Run(fmt.Sprintf("%s/%d times %d", name, times, code), func(t *testing.T) {
					for nth := 1; ; nth++ {
						node := inState(t, c.before)
						host := systemapi.NewOn(node)
						fault := inject(t, node, winsim.Fault{Nth: nth, Times: times, Error: uint32(code)})
						err := c.do(host)
						if fault.Hits() == 0 {
							must(t, err)
							return
						}
						if text := fmt.Sprint(err); err != nil && (strings.Contains(text, "\n") || !strings.Contains(text, " service ")) {
							t.Errorf("call %d: %v", nth, err)
						}
						fault.Remove()
						must(t, c.do(host))
						wantState(t, node, c.after, "base", "middle", "top")
					}
				})
			}
		}
	}
}

// TestSweep_CallerLeaves ends the caller's context at every call of every change in turn:
// the call ends at once, nothing stays locked, and a retry succeeds.
func TestSweep_CallerLeaves(t *testing.T) {
	for name, c := range changes {
		t.Run(name, func(t *testing.T) {
			for nth := 1; ; nth++ {
				node := inState(t, c.before)
				host := systemapi.NewOn(node)
				ctx, cancel := context.WithCancel(t.Context())
				fault := inject(t, node, winsim.Fault{Nth: nth, Times: 1, Delay: time.Hour, Do: func(*winsim.Node) { cancel() }})
				err := c.do(bind(ctx, host))
				cancel()
				if fault.Hits() == 0 {
					must(t, err)
					return
				}
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the caller left at call %d: %v", nth, err)
				}
				fault.Remove()
				must(t, c.do(host))
				wantState(t, node, c.after, "base", "middle", "top")
			}
		})
	}
}

// TestLocks: calls on one service wait for each other. A caller that leaves and a call on another
// service do not wait.
func TestLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, winsim.Service{Name: "a"}, winsim.Service{Name: "b"})
		host := systemapi.NewOn(node)
		hang := inject(t, node, winsim.Fault{Call: "StartService", Object: "a", Times: 1, Delay: time.Hour})
		var first sync.WaitGroup
		first.Go(func() {
			if err := host.StartService("a"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if err := bind(ctx, host).StopService("A", true); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Errorf("the same service: %v after %v, want the deadline after 1s", err, time.Since(begin))
		}
		must(t, host.StartService("b"))
		if _, err := host.GetService("a"); err != nil {
			t.Errorf("a question: %v", err)
		}
		hang.Remove()
		first.Wait()
		wantState(t, node, winsim.ServiceRunning, "a", "b")
	})
}

// TestLocks_Families starts and stops services that depend on each other, in all directions. No
// caller may wait for ever.
func TestLocks_Families(t *testing.T) {
	node := newNode(t, family()...)
	host := systemapi.NewOn(node)
	var callers sync.WaitGroup
	for _, name := range []string{"base", "middle", "top"} {
		for range 4 {
			callers.Go(func() {
				for range 20 {
					// Each may be undone by the others, and is an error then; what counts
					// is that all of them end.
					_ = host.StopService(name, true)
					_ = host.StartService(name)
				}
			})
		}
	}
	callers.Wait()
	must(t, host.StopService("base", true))
	wantState(t, node, winsim.ServiceStopped, "base", "middle", "top")
}
