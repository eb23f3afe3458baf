package api_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestDisconnectTarget_EverySession(t *testing.T) {
	node, host := newNode(t, twoSessions())
	wantSessions(t, node, 3)
	must(t, disconnect(host))
	wantSessions(t, node, 1)
	wantCalls(t, node, "Logout", 2)
	if logins := node.Describe().ISCSI.Logins; len(logins) != 1 || logins[0].Target != guarded {
		t.Errorf("Windows will log in to %v, want the other target only", logins)
	}
	must(t, disconnect(host))
	wantCalls(t, node, "Logout", 2)
}

// TestDisconnectTarget_ForgottenPortal: sessions can be ended after their portal was removed, or
// through another one.
func TestDisconnectTarget_ForgottenPortal(t *testing.T) {
	node, host := connected(t, model())
	must(t, host.RemoveTargetPortal(portal()))
	must(t, host.DisconnectTarget(&iscsiapi.TargetPortal{Address: "10.9.9.9", Port: 1}, target))
	wantSessions(t, node, 0)
	wantKind(t, "again", disconnect(host), winerr.NotFound, target, "ObjectNotFound", "AddTargetPortal")
}

// TestDisconnectTarget_OtherPortal: what counts is that there is no session.
func TestDisconnectTarget_OtherPortal(t *testing.T) {
	_, host := newNode(t, model())
	must(t, host.DisconnectTarget(&iscsiapi.TargetPortal{Address: "10.0.0.11", Port: 3260}, target))
}

func TestDisconnectTarget_OneSessionFails(t *testing.T) {
	node, host := newNode(t, twoSessions())
	inject(t, node, winsim.Fault{Call: "Logout", Times: 1, Error: uint32(winerr.AccessDenied)})
	wantKind(t, "disconnect", disconnect(host), winerr.Denied, target)
	wantSessions(t, node, 2) // the other one, and that of the other target
	must(t, disconnect(host))
	wantSessions(t, node, 1)
}

func TestDisconnectTarget_Busy(t *testing.T) {
	for _, code := range []winerr.Code{0xEFFF0040, 0xEFFF001F, 0xEFFF0062} {
		node, host := connected(t, model())
		inject(t, node, winsim.Fault{Call: "Logout", Times: 8, Error: uint32(code)})
		begin := node.Now()
		must(t, disconnect(host))
		wantCalls(t, node, "Logout", 9)
		// 0.5, 1, 2 and then 4 seconds.
		if waited := node.Now().Sub(begin); waited != 3500*time.Millisecond+5*4*time.Second {
			t.Errorf("it took %v", waited)
		}
	}
	node, host := connected(t, model())
	release, err := node.Hold(target)
	must(t, err)
	begin := node.Now()
	wantKind(t, "for ever", disconnect(host), winerr.Busy, target, "0xefff0040", "unmount")
	if waited := node.Now().Sub(begin); waited != time.Minute {
		t.Errorf("it gave up after %v, want a minute", waited)
	}
	wantSessions(t, node, 1)
	release()
	must(t, disconnect(host))
}

// TestDisconnectTarget_BusyUntilDeadline: the caller learns that the disks are in use, rather
// than that its time is over.
func TestDisconnectTarget_BusyUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := model()
		m.RealTime = true
		node, host := connected(t, m)
		_, err := node.Hold(target)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin := time.Now()
		wantKind(t, "disconnect", disconnect(bind(ctx, host)), winerr.Busy, "unmount")
		if waited := time.Since(begin); waited != 9*time.Second {
			t.Errorf("it took %v", waited)
		}
	})
}

// TestDisconnectTarget_LingeringSession: a session that Windows lists after the logout is not
// gone.
func TestDisconnectTarget_LingeringSession(t *testing.T) {
	node, _ := connected(t, model())
	machine := &odd{Node: node, logout: func() error { return nil }}
	wantKind(t, "disconnect", disconnect(iscsiapi.NewOn(machine)), winerr.Busy, target, "still lists")
}

func TestDisconnectTarget_SessionEndsByItself(t *testing.T) {
	node, host := connected(t, model())
	inject(t, node, winsim.Fault{Call: "Logout", Times: 1, Error: uint32(winerr.ISCSIInvalidSessionID)})
	must(t, disconnect(host))
	wantSessions(t, node, 0)
}

func TestDisconnectTarget_StoredLoginGoesMeanwhile(t *testing.T) {
	node, host := newNode(t, twoSessions())
	inject(t, node, fault("RemovePersistentTarget", winerr.ISCSITargetNotFound))
	must(t, disconnect(host))
	wantSessions(t, node, 1)
}

// TestDisconnectTarget_LoginsLast: a volume that stays in use is there again after a restart of Windows. Logins that cannot be
// removed are tried again, when the sessions have ended.
func TestDisconnectTarget_LoginsLast(t *testing.T) {
	node, host := newNode(t, twoSessions())
	before := len(node.Describe().ISCSI.Logins)
	release, err := node.Hold(target)
	must(t, err)
	wantKind(t, "in use", disconnect(host), winerr.Busy, target)
	if after := len(node.Describe().ISCSI.Logins); after != before || before == 0 {
		t.Errorf("%d logins are left of %d", after, before)
	}
	release()
	failing := inject(t, node, fault("RemovePersistentTarget", winerr.AccessDenied))
	wantKind(t, "disconnect", disconnect(host), winerr.Denied, target)
	wantSessions(t, node, 1)
	failing.Remove()
	must(t, disconnect(host))
	if after := len(node.Describe().ISCSI.Logins); after != 1 {
		t.Errorf("%d logins are left, want that of the other target", after)
	}
}

// TestDisconnectTarget_LogoutIsLate: while Windows may still end a session, ConnectTarget does not answer with it. When it
// has ended, there is a new one.
func TestDisconnectTarget_LogoutIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := connected(t, model())
		fault := inject(t, node, winsim.Fault{Call: "Logout", Times: 1, Delay: time.Hour})
		wantKind(t, "disconnect", disconnect(host), winerr.Deadline)
		wantKind(t, "connect", connect(host), winerr.Unavailable, target, "logging out of the session")
		fault.Remove()
		synctest.Wait()
		wantSessions(t, node, 0)
		must(t, connect(host))
		wantSessions(t, node, 1)
	})
}
