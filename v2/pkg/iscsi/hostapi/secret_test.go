package api_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestSecrets_StayHidden plants secrets and fails every call in turn. Neither the errors nor
// the log at its most talkative may have them.
func TestSecrets_StayHidden(t *testing.T) {
	const planted = "xyzzy-plugh-42"
	forms := []string{planted, hex.EncodeToString([]byte(planted)), strings.Trim(fmt.Sprintf("%d", []byte(planted)), "[]")}
	for _, code := range []winerr.Code{122, 5, 0xEFFF0009, 0xEFFF004A, 0xEFFF003E, 0xEFFF0040, 0xEFFF003F, 0xEFFF0001} {
		for nth, done := 1, false; !done; nth++ {
			var mu sync.Mutex
			var log strings.Builder
			logger := funcr.New(func(prefix, args string) {
				mu.Lock()
				defer mu.Unlock()
				log.WriteString(prefix + args + "\n")
			}, funcr.Options{Verbosity: 100})
			node, host := newNode(t, model())
			fault := inject(t, node, winsim.Fault{Nth: nth, Error: uint32(code)})
			h := bind(klog.NewContext(t.Context(), logger), host)
			text := fmt.Sprintf("%+v", []error{
				h.SetMutualChapSecret(planted),
				h.ConnectTarget(portal(), guarded, "ONEWAYCHAP", planted, planted),
				h.ConnectTarget(portal(), guarded, "MUTUALCHAP", user, planted),
				h.ConnectTarget(portal(), target, "NONE", user, planted),
				h.DisconnectTarget(portal(), target),
			})
			mu.Lock()
			text += log.String()
			mu.Unlock()
			for _, form := range forms {
				if strings.Contains(text, form) {
					t.Fatalf("call %d fails with %v, and gives a secret away:\n%s", nth, code, text)
				}
			}
			done = fault.Hits() == 0
		}
	}
}

// thief keeps the secrets that it is given.
type thief struct {
	*winsim.Node
	stolen []win.Secret
}

func (s *thief) Login(_ context.Context, login win.Login) (win.SessionID, error) {
	s.stolen = append(s.stolen, login.Secret)
	if got := string(login.Secret.Bytes()); got != secret {
		return win.SessionID{}, fmt.Errorf("it is %d bytes long", len(got))
	}
	return win.SessionID{}, nil
}

func (s *thief) SetInitiatorCHAPSharedSecret(_ context.Context, secret win.Secret) error {
	s.stolen = append(s.stolen, secret)
	return nil
}

// TestSecrets_AreWiped looks at the memory of secrets after they were used.
func TestSecrets_AreWiped(t *testing.T) {
	node, _ := newNode(t, model())
	machine := &thief{Node: node}
	host := iscsiapi.NewOn(machine)
	must(t, host.ConnectTarget(portal(), guarded, "ONEWAYCHAP", user, secret))
	must(t, host.SetMutualChapSecret(secret))
	if len(machine.stolen) != 2 {
		t.Fatalf("%d secrets were given", len(machine.stolen))
	}
	for _, stolen := range machine.stolen {
		if b := stolen.Bytes(); string(b) != strings.Repeat("\x00", len(secret)) {
			t.Errorf("of a secret is left %q", b)
		}
	}
}

// TestSecrets_AreForgotten: the secret of targets goes with the last session of the node, unless its login is still to come.
func TestSecrets_AreForgotten(t *testing.T) {
	const mutual = "winsim-mutual-1"
	node, host := newNode(t, model())
	has := func(want bool, when string) {
		t.Helper()
		if got := node.Describe().ISCSI.Secret; (got == mutual) != want || got == "" {
			t.Errorf("%s: the node has the secret: %v, want %v", when, !want, want)
		}
	}
	must(t, host.SetMutualChapSecret(mutual))
	must(t, connect(host))
	must(t, disconnect(host))
	has(true, "before the login")
	must(t, host.ConnectTarget(portal(), guarded, "MUTUALCHAP", user, secret))
	must(t, connect(host))
	must(t, disconnect(host))
	has(true, "while a session may need it")
	fault := inject(t, node, fault("SetInitiatorCHAPSharedSecret", winerr.ISCSIServiceNotRunning))
	must(t, host.DisconnectTarget(portal(), guarded))
	has(true, "after an error")
	fault.Remove()
	must(t, connect(host))
	must(t, disconnect(host))
	has(false, "after the last session")

	must(t, host.SetMutualChapSecret(mutual))
	must(t, node.Sleep(t.Context(), 5*time.Minute))
	other := iscsiapi.NewOn(node) // another process, which did not set it
	must(t, connect(other))
	must(t, disconnect(other))
	has(true, "after another process' last session")
}

// TestSecrets_SetWhileForgotten: a secret that is set while another one is forgotten stays.
func TestSecrets_SetWhileForgotten(t *testing.T) {
	const next = "winsim-mutual-2"
	node, _ := newNode(t, model())
	var host iscsiapi.HostAPI
	set, loggedOut, listed := false, false, 0
	host = iscsiapi.NewOn(win.Intercept(node, func(ctx context.Context, c *win.Call, call func(context.Context) error) error {
		switch loggedOut = loggedOut || c.Method == "Logout"; {
		case loggedOut && c.Method == "PersistentLogins":
			listed++
		case c.Method == "SetInitiatorCHAPSharedSecret" && listed == 2:
			listed++
			waits, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			set = bind(waits, host).SetMutualChapSecret(next) == nil //nolint:contextcheck // another caller
		}
		return call(ctx)
	}))
	must(t, host.SetMutualChapSecret("winsim-mutual-1"))
	must(t, connect(host))
	must(t, node.Sleep(t.Context(), 5*time.Minute))
	must(t, disconnect(host))
	if listed != 3 {
		t.Fatal("the first secret was not forgotten")
	}
	if !set { // it waited for its turn
		must(t, host.SetMutualChapSecret(next))
	}
	if got := node.Describe().ISCSI.Secret; got != next {
		t.Error("the next secret was forgotten, too")
	}
}
