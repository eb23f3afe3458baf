package api_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"testing"

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
