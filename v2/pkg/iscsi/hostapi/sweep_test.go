package api_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// operation is one that the sweeps disturb.
type operation struct {
	prepare func(iscsiapi.HostAPI) error
	do      func(iscsiapi.HostAPI) error
	check   func(*winsim.Node) string // what is wrong when it has succeeded
}

func sessionsAre(want int) func(*winsim.Node) string {
	return func(node *winsim.Node) string {
		if got := node.Describe().ISCSI.Sessions; len(got) != want {
			return fmt.Sprintf("the sessions are %+v, want %d", got, want)
		}
		return ""
	}
}

var operations = map[string]operation{
	"add": {
		prepare: func(h iscsiapi.HostAPI) error { return h.RemoveTargetPortal(portal()) },
		do:      func(h iscsiapi.HostAPI) error { return h.AddTargetPortal(portal()) },
	},
	"remove":   {do: func(h iscsiapi.HostAPI) error { return h.RemoveTargetPortal(portal()) }},
	"list":     {do: func(h iscsiapi.HostAPI) error { _, err := h.ListTargetPortals(); return err }},
	"discover": {do: func(h iscsiapi.HostAPI) error { _, err := h.DiscoverTargetPortal(portal()); return err }},
	"connect":  {do: connect, check: sessionsAre(1)},
	"connect by CHAP": {
		do:    func(h iscsiapi.HostAPI) error { return h.ConnectTarget(portal(), guarded, "ONEWAYCHAP", user, secret) },
		check: sessionsAre(1),
	},
	"disconnect":                   {prepare: connect, do: disconnect, check: sessionsAre(0)},
	"disconnect without a session": {do: disconnect, check: sessionsAre(0)},
	"disks": {
		prepare: connect,
		do:      func(h iscsiapi.HostAPI) error { _, err := disks(h); return err },
		check:   sessionsAre(1),
	},
	"secret": {do: func(h iscsiapi.HostAPI) error { return h.SetMutualChapSecret(secret) }},
}

func (o operation) node(t *testing.T) (*winsim.Node, iscsiapi.HostAPI) {
	t.Helper()
	node, host := newNode(t, model())
	if o.prepare != nil {
		must(t, o.prepare(host))
	}
	return node, host
}

func (o operation) retry(t *testing.T, node *winsim.Node, host iscsiapi.HostAPI) {
	t.Helper()
	if err := o.do(host); err != nil {
		t.Fatalf("the retry failed: %v", err)
	}
	if o.check != nil {
		if problem := o.check(node); problem != "" {
			t.Error(problem)
		}
	}
}

// TestSweep_Fails fails every call of every operation in turn, once and from there on. When
// the trouble is over a retry must succeed.
func TestSweep_Fails(t *testing.T) {
	codes := []winerr.Code{
		winerr.AccessDenied, winerr.InsufficientBuffer, winerr.InvalidParameter, winerr.ISCSIConnectionFailed, winerr.ISCSISessionBusy,
		winerr.ISCSIDeviceBusy, winerr.ISCSIServiceNotRunning, winerr.ISCSITransportError, winerr.ISCSIAuthenticationFailure,
	}
	for name, o := range operations {
		for _, code := range codes {
			for _, times := range []int{1, 0} { // 0: from there on
				t.Run(fmt.Sprintf("%s/%d times %#x", name, times, uint32(code)), func(t *testing.T) {
					for nth := 1; ; nth++ {
						node, host := o.node(t)
						fault := inject(t, node, winsim.Fault{Nth: nth, Times: times, Error: uint32(code)})
						err := o.do(host)
						if fault.Hits() == 0 {
							if err != nil || nth == 1 {
								t.Fatalf("without a fault: %v", err)
							}
							return
						}
						if err != nil && winerr.CodeOf(err) != code {
							t.Errorf("call %d failed with %v, and that was made of it: %v", nth, code, err)
						}
						fault.Remove()
						o.retry(t, node, host)
					}
				})
			}
		}
	}
}

// retryStuck repeats an operation while one of its calls hangs: it joins what is under way, or learns that it hangs. When the
// call has come back, a retry must succeed.
func (o operation) retryStuck(t *testing.T, node *winsim.Node, host iscsiapi.HostAPI, fault *winsim.Injection) {
	t.Helper()
	if err := o.do(host); err != nil {
		wantKind(t, "a retry during the hang", err, winerr.Unavailable, "has not come back from Windows")
	}
	fault.Remove()
	synctest.Wait()
	o.retry(t, node, host)
}

// TestSweep_Hangs lets every call of every operation hang in turn while its caller is
// impatient. The caller leaves.
func TestSweep_Hangs(t *testing.T) {
	for name, o := range operations {
		t.Run(name, func(t *testing.T) {
			for nth, done := 1, false; !done; nth++ {
				synctest.Test(t, func(t *testing.T) {
					node, host := o.node(t)
					fault := inject(t, node, winsim.Fault{Nth: nth, Times: 1, Delay: time.Minute})
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
					defer cancel()
					begin := time.Now()
					err := o.do(bind(ctx, host))
					if done = fault.Hits() == 0; done {
						must(t, err)
						return
					}
					if waited := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || waited != 10*time.Second {
						t.Errorf("call %d hangs: after %v %v, want the deadline", nth, waited, err)
					}
					o.retryStuck(t, node, host, fault)
				})
			}
		})
	}
}

var update = flag.Bool("update", false, "rewrite the table of calls in testdata")

// TestCalls_Budget pins how many calls each operation makes on a machine without trouble.
// "disks" has two pauses until they have come, and asks again after each.
func TestCalls_Budget(t *testing.T) {
	var rows []calltable.Row
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		node, host := operations[name].node(t)
		node.ResetCalls()
		must(t, operations[name].do(host))
		rows = append(rows, calltable.Row{Operation: name, Calls: node.Calls()})
	}
	calltable.Compare(t, rows, *update)
}
