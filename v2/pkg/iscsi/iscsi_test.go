package iscsi_test

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
)

type fakeHost struct {
	iscsiapi.HostAPI // nil: nothing else is called
	*grouptest.Recorder
}

func (f fakeHost) AddTargetPortal(p *iscsiapi.TargetPortal) error {
	return f.Note("add", p.Address, p.Port)
}

func (f fakeHost) ConnectTarget(p *iscsiapi.TargetPortal, iqn, authType, user, secret string) error {
	return f.Note("connect", p.Address, p.Port, iqn, authType, user, secret)
}

func (f fakeHost) SetMutualChapSecret(secret string) error { return f.Note("secret", secret) }

func newFake() fakeHost { return fakeHost{Recorder: &grouptest.Recorder{}} }

func newISCSI(t *testing.T, host iscsiapi.HostAPI) *iscsi.ISCSI {
	t.Helper()
	ic, err := iscsi.New(host)
	require.NoError(t, err)
	return ic
}

func TestNew_NilHost(t *testing.T) {
	if _, err := iscsi.New(nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("New(nil) = %v, want an invalid-argument error", err)
	}
}

const (
	target = "iqn.2001-04.com.example:storage"
	secret = "xyzzy-xyzzy-1"
)

// portal is a good portal for requests; it leaves the port to us.
var portal = &iscsi.TargetPortal{TargetAddress: "10.0.0.1"}

func TestISCSI_EveryMethod(t *testing.T) {
	grouptest.EveryMethod[iscsi.Interface](t, newISCSI(t, fakeHost{}))
}

// TestISCSI_AttackersFields sends what a user could have put into a volume. Nothing of it may
// reach the host, and the errors must not be as long as what was sent, nor have its secrets.
func TestISCSI_AttackersFields(t *testing.T) {
	const huge = 10 << 20
	bad := map[string]string{
		"huge": strings.Repeat("a", huge), "NUL": "10.0.0.1\x00", "newline": "10.0.0.1\nhost", "space": "10.0.0.1 ", "command": "$(shutdown)", "path": `..\..\x`, "not text": "\xff\xfe",
	}
	for name, text := range bad {
		for method, do := range map[string]func(context.Context, iscsi.Interface) (any, error){
			"AddTargetPortal":          grouptest.With(iscsi.Interface.AddTargetPortal, &iscsi.AddTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: text}}),
			"address of ConnectTarget": grouptest.With(iscsi.Interface.ConnectTarget, &iscsi.ConnectTargetRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: text}, IQN: target}),
			"ConnectTarget":            grouptest.With(iscsi.Interface.ConnectTarget, &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: target + text + "\n"}),
			"DisconnectTarget":         grouptest.With(iscsi.Interface.DisconnectTarget, &iscsi.DisconnectTargetRequest{TargetPortal: portal, IQN: text}),
			"GetTargetDisks":           grouptest.With(iscsi.Interface.GetTargetDisks, &iscsi.GetTargetDisksRequest{TargetPortal: portal, IQN: text}),
			"secret":                   grouptest.With(iscsi.Interface.ConnectTarget, &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: target, AuthType: iscsi.ONE_WAY_CHAP, ChapSecret: "xyzzy" + text + "\x00"}),
			"SetMutualChapSecret":      grouptest.With(iscsi.Interface.SetMutualChapSecret, &iscsi.SetMutualChapSecretRequest{MutualChapSecret: "xyzzy" + text + "\x00"}),
			"user":                     grouptest.With(iscsi.Interface.ConnectTarget, &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: target, AuthType: iscsi.MUTUAL_CHAP, ChapUsername: text + "\n", ChapSecret: secret}),
		} {
			host := newFake()
			_, err := do(t.Context(), newISCSI(t, host))
			if !errors.Is(err, winerr.Invalid) || len(host.Calls) != 0 {
				t.Errorf("%s in %s: %.200v, and the host saw %.200q", name, method, err, host.Calls)
				continue
			}
			if text := err.Error(); len(text) > 1000 || strings.Contains(text, "xyzzy") {
				t.Errorf("%s in %s: the error is %.200q", name, method, text)
			}
		}
	}
}

func TestISCSI_Secrets(t *testing.T) {
	for text, good := range map[string]bool{
		"":                       false,
		"xyzzy-xyzzy":            false, // 11
		"xyzzy-xyzzy-":           true,
		"xyzzy-xyzzy-xyzz":       true,
		"xyzzy-xyzzy-xyzzy":      false, // 17
		"xyzzy\n\"'$` xyzzy":     true,
		"\xff\xfe\xfdxyzzyxyzzy": true,  // bytes that both sides agree on
		"ünïcödé":                false, // 11 bytes
	} {
		host := newFake()
		_, err := newISCSI(t, host).SetMutualChapSecret(t.Context(), &iscsi.SetMutualChapSecretRequest{MutualChapSecret: text})
		if (err == nil) != good {
			t.Errorf("mutual secret of %d bytes: %v", len(text), err)
		}
		_, err = newISCSI(t, host).ConnectTarget(t.Context(), &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: target, AuthType: iscsi.ONE_WAY_CHAP, ChapSecret: text})
		if (err == nil) != good {
			t.Errorf("secret of %d bytes: %v", len(text), err)
		}
	}
}

// TestISCSI_NoAuthSendsNoSecret: without CHAP, credentials do not reach the host and are not
// checked.
func TestISCSI_NoAuthSendsNoSecret(t *testing.T) {
	host := newFake()
	_, err := newISCSI(t, host).ConnectTarget(t.Context(), &iscsi.ConnectTargetRequest{TargetPortal: portal, IQN: target, ChapUsername: "me\n", ChapSecret: "short"})
	if want := []string{"connect 10.0.0.1 3260 " + target + " NONE"}; err != nil || !slices.Equal(host.Calls, want) {
		t.Errorf("%v, the host saw %q, want %q", err, host.Calls, want)
	}
}

func TestISCSI_AddressSpelling(t *testing.T) {
	host := newFake()
	for _, address := range []string{"[2001:DB8:0::1]", "2001:db8::1"} {
		if _, err := newISCSI(t, host).AddTargetPortal(t.Context(), &iscsi.AddTargetPortalRequest{TargetPortal: &iscsi.TargetPortal{TargetAddress: address, TargetPort: 65535}}); err != nil {
			t.Error(err)
		}
	}
	if want := "add 2001:db8::1 65535"; host.Calls[0] != want || host.Calls[1] != want {
		t.Errorf("the host saw %q", host.Calls)
	}
}
