package api_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// fault makes a call fail.
func fault(call string, code winerr.Code) winsim.Fault {
	return winsim.Fault{Call: call, Error: uint32(code)}
}

func TestAddTargetPortal(t *testing.T) {
	node, host := newNode(t, winsim.Default())
	for range 2 {
		must(t, host.AddTargetPortal(portal()))
	}
	wantCalls(t, node, "AddSendTargetPortal", 1)

	t.Run("another program is faster", func(t *testing.T) {
		node, host := newNode(t, winsim.Default())
		inject(t, node, fault("AddSendTargetPortal", winerr.ISCSIPortalAlreadyExists))
		must(t, host.AddTargetPortal(portal()))
	})
	t.Run("no answer", func(t *testing.T) {
		_, host := newNode(t, winsim.Default())
		err := host.AddTargetPortal(&iscsiapi.TargetPortal{Address: "10.9.9.9", Port: 3260})
		wantKind(t, "add", err, winerr.Unavailable, "10.9.9.9:3260", "0xefff0003", "check")
	})
	t.Run("spelled in another way", func(t *testing.T) {
		m := winsim.Default()
		m.ISCSI.Portals = append(m.ISCSI.Portals, winsim.ISCSIPortal{Address: "2001:db8:0::1", Registered: true})
		node, host := newNode(t, m)
		must(t, host.AddTargetPortal(&iscsiapi.TargetPortal{Address: "2001:DB8::1", Port: 3260}))
		wantCalls(t, node, "AddSendTargetPortal", 0)
		must(t, host.RemoveTargetPortal(&iscsiapi.TargetPortal{Address: "2001:DB8::0001", Port: 3260}))
		wantCalls(t, node, "RemoveSendTargetPortal", 1)
	})
}

// TestSecondVolume: drivers with a target for each volume add the portal and connect, and never
// ask for a discovery. The target may also come after the portal was added.
func TestSecondVolume(t *testing.T) {
	const second = "iqn.2025-01.com.example:second"
	for name, add := range map[string]bool{"after AddTargetPortal": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			node, host := newNode(t, winsim.Default())
			must(t, host.AddTargetPortal(portal()))
			must(t, host.ConnectTarget(portal(), "iqn.2025-01.com.example:open", "NONE", "", ""))
			must(t, node.Add(winsim.Model{ISCSI: winsim.ISCSI{Targets: []winsim.ISCSITarget{{IQN: second, LUNs: []winsim.Disk{{Size: winsim.GiB}}}}}}))
			if add {
				must(t, host.AddTargetPortal(portal()))
			}
			must(t, host.ConnectTarget(portal(), second, "NONE", "", ""))
			disks, err := host.GetTargetDisks(portal(), second)
			if err != nil || len(disks) != 1 {
				t.Errorf("%v, %v, want one disk", disks, err)
			}
		})
	}
	t.Run("a portal that is away", func(t *testing.T) {
		node, host := newNode(t, winsim.Default())
		must(t, host.AddTargetPortal(portal()))
		must(t, node.SetISCSIPortalDown("10.0.0.10:3260", true))
		must(t, host.AddTargetPortal(portal()))
		wantKind(t, "connect", host.ConnectTarget(portal(), second, "NONE", "", ""), winerr.NotFound, second)
	})
}

func TestRemoveTargetPortal_RemovedConcurrently(t *testing.T) {
	node, host := newNode(t, model())
	inject(t, node, fault("RemoveSendTargetPortal", winerr.ISCSIPortalNotFound))
	must(t, host.RemoveTargetPortal(portal()))
}

func TestDiscoverTargetPortal(t *testing.T) {
	m := model()
	m.ISCSI.Portals = append(m.ISCSI.Portals, winsim.ISCSIPortal{Address: "10.0.0.11", Registered: true}, winsim.ISCSIPortal{Address: "storage.example.com", Registered: true})
	m.ISCSI.Targets[1].Portals = []string{"10.0.0.11"}
	m.ISCSI.Targets[0].Portals = []string{"10.0.0.10"}

	node, host := newNode(t, m)
	got, err := host.DiscoverTargetPortal(portal())
	if must(t, err); !slices.Equal(got, []string{target}) {
		t.Errorf("the portal offers %q", got)
	}
	wantCalls(t, node, "RefreshSendTargetPortal", 1)
	wantCalls(t, node, "ReportTargetPortals", 2)

	t.Run("by name", func(t *testing.T) {
		// Targets tell addresses, never names: all of that port may be this portal's.
		_, host := newNode(t, m)
		got, err := host.DiscoverTargetPortal(&iscsiapi.TargetPortal{Address: "storage.example.com", Port: 3260})
		if must(t, err); !slices.Equal(got, []string{target, guarded}) {
			t.Errorf("the portal offers %q", got)
		}
	})
	t.Run("a target goes meanwhile", func(t *testing.T) {
		node, host := newNode(t, m)
		inject(t, node, fault("ReportTargetPortals", winerr.ISCSITargetNotFound))
		if got, err := host.DiscoverTargetPortal(portal()); err != nil || len(got) != 0 {
			t.Errorf("the portal offers %q, %v", got, err)
		}
	})
	t.Run("unknown portal", func(t *testing.T) {
		_, host := newNode(t, winsim.Default())
		_, err := host.DiscoverTargetPortal(portal())
		wantKind(t, "discover", err, winerr.NotFound, "10.0.0.10:3260", "AddTargetPortal")
	})
}

// TestDiscoverTargetPortal_Fresh: a caller that comes during a discovery needs a later one, and
// shares it with others.
func TestDiscoverTargetPortal_Fresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, model())
		inject(t, node, winsim.Fault{Call: "RefreshSendTargetPortal", Times: 1, Delay: time.Minute})
		done := make(chan error)
		for range 4 {
			go func() {
				_, err := host.DiscoverTargetPortal(portal())
				done <- err
			}()
			synctest.Wait()
		}
		for range 4 {
			must(t, <-done)
		}
		wantCalls(t, node, "RefreshSendTargetPortal", 2)
	})
}

// TestPortal_CallerLeaves: a portal that does not answer delays only its own callers.
func TestPortal_CallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, winsim.Default())
		hangs := inject(t, node, winsim.Fault{Call: "AddSendTargetPortal", Times: 1, Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := bind(ctx, host).AddTargetPortal(portal()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want the deadline", err)
		}
		other := &iscsiapi.TargetPortal{Address: "10.0.0.11", Port: 3260}
		must(t, host.RemoveTargetPortal(other))
		begin := time.Now()
		must(t, host.AddTargetPortal(portal())) // joins
		if waited := time.Since(begin); waited != 59*time.Second || hangs.Hits() != 1 {
			t.Errorf("the retry took %v", waited)
		}
		wantCalls(t, node, "AddSendTargetPortal", 1)
	})
}
