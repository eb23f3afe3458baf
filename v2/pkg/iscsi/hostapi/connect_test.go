package api_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestConnectTarget(t *testing.T) {
	t.Run("a session is enough", func(t *testing.T) {
		node, host := connected(t, model())
		must(t, connect(host))
		wantCalls(t, node, "Login", 0)
		wantCalls(t, node, "Sessions", 1)
	})
	t.Run("a session that connects again", func(t *testing.T) {
		node, host := connected(t, model())
		must(t, node.SetISCSIPortalDown("10.0.0.10", true))
		must(t, connect(host))
		wantCalls(t, node, "Login", 1) // 0xefff003f
		wantSessions(t, node, 1)
	})
	t.Run("spurious failures", func(t *testing.T) {
		for _, code := range []winerr.Code{122, 0x8007007A, 0xEFFF0054} {
			node, host := newNode(t, model())
			inject(t, node, winsim.Fault{Call: "Login", Times: 9, Error: uint32(code)})
			must(t, connect(host))
			wantCalls(t, node, "Login", 10)
		}
		node, host := newNode(t, model())
		inject(t, node, fault("Login", 122))
		wantKind(t, "ten times", connect(host), winerr.Internal, "122")
		wantCalls(t, node, "Login", 10)
	})
	t.Run("unknown target", func(t *testing.T) {
		_, host := newNode(t, model())
		err := host.ConnectTarget(portal(), target+"x", "NONE", "", "")
		wantKind(t, "connect", err, winerr.NotFound, target+"x", "DiscoverTargetPortal", "10.0.0.10:3260", "0xefff0029")
	})
	t.Run("target of another portal", func(t *testing.T) {
		m := model()
		m.ISCSI.Portals = append(m.ISCSI.Portals, winsim.ISCSIPortal{Address: "10.0.0.11", Registered: true})
		m.ISCSI.Targets[0].Portals = []string{"10.0.0.11"}
		_, host := newNode(t, m)
		wantKind(t, "connect", connect(host), winerr.NotFound, target)
	})
	t.Run("portal is down", func(t *testing.T) {
		node, host := newNode(t, model())
		must(t, node.SetISCSIPortalDown("10.0.0.10", true))
		wantKind(t, "connect", connect(host), winerr.Unavailable, target, "0xefff0003")
	})
}

// TestConnectTarget_Paths: a login through another portal adds a path if MPIO has claimed the disks, and otherwise
// changes nothing.
func TestConnectTarget_Paths(t *testing.T) {
	at := func(address string) *iscsiapi.TargetPortal {
		return &iscsiapi.TargetPortal{Address: address, Port: 3260}
	}
	for _, mpio := range []bool{false, true} {
		m := model()
		m.ISCSI.MPIO, m.ISCSI.PnPDelay = mpio, 0
		m.ISCSI.Portals = append(m.ISCSI.Portals, winsim.ISCSIPortal{Address: "10.0.0.11"}, winsim.ISCSIPortal{Address: "10.0.0.12"})
		m.Services = append(m.Services, winsim.Service{Name: "mpio", StartType: winsim.StartAutomatic})
		node, host := connected(t, m)
		sessions := 1
		join := func(what, address string, want int) {
			t.Helper()
			err := host.ConnectTarget(at(address), target, "NONE", "", "")
			if got := len(node.Describe().ISCSI.Sessions); err != nil || !mpio && got != 1 || mpio && got != want {
				t.Errorf("MPIO %t, %s: %v, and %d sessions", mpio, what, err, got)
			}
		}
		join("through the same portal", "10.0.0.10", sessions)
		join("through one that is not known to have the target", "10.0.0.11", sessions)
		must(t, host.AddTargetPortal(at("10.0.0.11")))
		join("through another portal", "10.0.0.11", 2)
		join("again", "::ffff:10.0.0.11", 2)
		must(t, host.AddTargetPortal(at("10.0.0.12")))
		must(t, node.SetISCSIPortalDown("10.0.0.11", true))
		join("through a third, while one has lost its connection", "10.0.0.12", 3)
		join("through that", "10.0.0.12", 3)
		must(t, node.SetISCSIPortalDown("10.0.0.10", true), node.SetISCSIPortalDown("10.0.0.12", true))
		join("without a connection", "10.0.0.10", 3)
		must(t, disconnect(host))
		wantSessions(t, node, 0)
	}
}

// TestConnectTarget_Spelling: a machine may know targets in one spelling only.
func TestConnectTarget_Spelling(t *testing.T) {
	node, _ := newNode(t, model())
	host := iscsiapi.NewOn(&odd{Node: node, login: func(login win.Login) error {
		if login.Target != target {
			return winerr.ISCSITargetNotFound
		}
		return nil
	}})
	must(t, host.ConnectTarget(portal(), strings.ToUpper(target), "NONE", "", ""))
	wantSessions(t, node, 1)
}

func TestConnectTarget_CHAP(t *testing.T) {
	node, host := newNode(t, model())
	for name, c := range map[string]struct{ auth, user, secret, advice string }{
		"none":           {"NONE", user, secret, "may require CHAP"},
		"wrong secret":   {"ONEWAYCHAP", user, "winsim-secret-2", "check CHAP user and secret"},
		"wrong user":     {"ONEWAYCHAP", "winsam", secret, "check CHAP user and secret"},
		"no node secret": {"MUTUALCHAP", user, secret, "SetMutualChapSecret"},
	} {
		err := host.ConnectTarget(portal(), guarded, c.auth, c.user, c.secret)
		wantKind(t, name, err, winerr.Denied, guarded, c.advice)
	}
	must(t, host.SetMutualChapSecret("winsim-mutual-2"))
	wantKind(t, "wrong node secret", host.ConnectTarget(portal(), guarded, "MUTUALCHAP", user, secret), winerr.Denied)
	must(t, host.SetMutualChapSecret("winsim-mutual-1"))
	must(t, host.ConnectTarget(portal(), guarded, "MUTUALCHAP", user, secret))
	wantSessions(t, node, 1)
}

// TestConnectTarget_NoAuthSendsNoSecret: a target without CHAP refuses credentials, so that
// this fails if they are sent.
func TestConnectTarget_NoAuthSendsNoSecret(t *testing.T) {
	_, host := newNode(t, model())
	must(t, host.ConnectTarget(portal(), target, "NONE", user, secret))
}

// TestConnectTarget_Outlived: a login that takes longer than its caller waits goes on, and the
// retry joins it.
func TestConnectTarget_Outlived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, model())
		inject(t, node, winsim.Fault{Call: "Login", Times: 1, Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := connect(bind(ctx, host))
		wantKind(t, "impatient", err, winerr.Deadline, target)
		begin := time.Now()
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if err := connect(host); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if waited := time.Since(begin); waited != 50*time.Second {
			t.Errorf("the retries took %v, want the rest of the first", waited)
		}
		wantCalls(t, node, "Login", 1)
		wantSessions(t, node, 1)
	})
}

// TestConnectTarget_OtherCredentials: a caller with the right secret does not share the failure of
// a caller with a wrong one.
func TestConnectTarget_OtherCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, model())
		inject(t, node, winsim.Fault{Call: "Login", Times: 1, Delay: time.Minute})
		wrong, right := make(chan error, 1), make(chan error, 1)
		go func() { wrong <- host.ConnectTarget(portal(), guarded, "ONEWAYCHAP", user, "winsim-secret-2") }()
		synctest.Wait()
		go func() { right <- host.ConnectTarget(portal(), guarded, "ONEWAYCHAP", user, secret) }()
		wantKind(t, "wrong", <-wrong, winerr.Denied)
		must(t, <-right)
		wantSessions(t, node, 1)
	})
}

// TestConnectTarget_InOrder: a login that is asked for while a logout waits is done after it,
// although the same login is under way before it.
func TestConnectTarget_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, model())
		inject(t, node, winsim.Fault{Call: "Login", Times: 1, Delay: time.Minute})
		done := make(chan error)
		for _, call := range []func(iscsiapi.HostAPI) error{connect, disconnect, connect} {
			go func() { done <- call(host) }()
			synctest.Wait()
		}
		for range 3 {
			must(t, <-done)
		}
		wantCalls(t, node, "Login", 2)
		wantSessions(t, node, 1)
	})
}

// TestTargets_DoNotWaitForEachOther lets a login hang, and uses another target meanwhile.
func TestTargets_DoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, model())
		inject(t, node, winsim.Fault{Call: "Login", Object: target, Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hangs := make(chan error)
		go func() { hangs <- connect(bind(ctx, host)) }()
		synctest.Wait()
		begin := time.Now()
		must(t, host.ConnectTarget(portal(), guarded, "ONEWAYCHAP", user, secret))
		must(t, host.DisconnectTarget(portal(), guarded))
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("the other target took %v", waited)
		}
		if err := <-hangs; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the login: %v", err)
		}
		time.Sleep(time.Hour) // until the work has given up
	})
}

// TestConnectTarget_LoginIsLate: while Windows may still log in, DisconnectTarget does not say that there is no session. What
// the login brings, it ends.
func TestConnectTarget_LoginIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := newNode(t, model())
		must(t, host.AddTargetPortal(portal()))
		fault := inject(t, node, winsim.Fault{Call: "Login", Times: 1, Delay: time.Hour})
		wantKind(t, "connect", connect(host), winerr.Deadline)
		wantKind(t, "disconnect", disconnect(host), winerr.Unavailable, target, "logging in to the target")
		fault.Remove()
		synctest.Wait()
		wantSessions(t, node, 1)
		must(t, disconnect(host))
		wantSessions(t, node, 0)
	})
}
