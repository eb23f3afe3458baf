package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const (
	target  = "iqn.2025-01.com.example:open"
	guarded = "iqn.2025-01.com.example:guarded"
	user    = "winsim"
	secret  = "winsim-secret-1"
)

func portal() *iscsiapi.TargetPortal {
	return &iscsiapi.TargetPortal{Address: "10.0.0.10", Port: 3260}
}

// model is the default node, which knows the portal of its targets already.
func model() winsim.Model {
	m := winsim.Default()
	m.ISCSI.Portals[0].Registered = true
	return m
}

// twoSessions is a node that has logged in to the target through two portals when it started.
func twoSessions() winsim.Model {
	m := model()
	m.ISCSI.PnPDelay = 0
	m.ISCSI.Portals = append(m.ISCSI.Portals, winsim.ISCSIPortal{Address: "10.0.0.11", Registered: true})
	m.ISCSI.Logins = []winsim.ISCSILogin{{Target: target, Portal: "10.0.0.10"}, {Target: target, Portal: "10.0.0.11"}, {Target: guarded, Portal: "10.0.0.10"}}
	return m
}

func newNode(t testing.TB, m winsim.Model) (*winsim.Node, iscsiapi.HostAPI) {
	t.Helper()
	node, err := winsim.New(m)
	must(t, err)
	t.Cleanup(node.Reboot) // ends what hangs
	return node, iscsiapi.NewOn(node)
}

// connected is a node with a session.
func connected(t testing.TB, m winsim.Model) (*winsim.Node, iscsiapi.HostAPI) {
	t.Helper()
	node, host := newNode(t, m)
	must(t, connect(host))
	node.ResetCalls()
	return node, host
}

func connect(host iscsiapi.HostAPI) error {
	return host.ConnectTarget(portal(), target, "NONE", "", "")
}

func disconnect(host iscsiapi.HostAPI) error { return host.DisconnectTarget(portal(), target) }

// bind bounds a host's calls by a context.
func bind(ctx context.Context, host iscsiapi.HostAPI) iscsiapi.HostAPI {
	return host.(hostctx.Binder[iscsiapi.HostAPI]).WithContext(ctx)
}

// inject lets a fault loose for the rest of the test.
func inject(t testing.TB, node *winsim.Node, f winsim.Fault) *winsim.Injection {
	t.Helper()
	injection, err := node.Inject(f)
	must(t, err)
	t.Cleanup(injection.Remove)
	return injection
}

var must = require.NoError

// wantKind checks the class of an error, and that it has some words.
func wantKind(t testing.TB, what string, err error, kind winerr.Kind, words ...string) {
	t.Helper()
	if err == nil || winerr.KindOf(err) != kind || !errors.Is(err, kind) {
		t.Errorf("%s: got error %v, want one of kind %q", what, err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: the error %q does not contain %q", what, err, word)
		}
	}
}

func wantCalls(t testing.TB, node *winsim.Node, call string, want int) {
	t.Helper()
	if got := node.Calls()[call]; got != want {
		t.Errorf("%d calls of %s were made, want %d", got, call, want)
	}
}

func wantSessions(t testing.TB, node *winsim.Node, want int) {
	t.Helper()
	if got := node.Describe().ISCSI.Sessions; len(got) != want {
		t.Errorf("the sessions are %+v, want %d", got, want)
	}
}
