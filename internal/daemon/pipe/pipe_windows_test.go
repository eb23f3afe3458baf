package pipe_test

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/pipe/pipetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var kind = pipetest.NamedPipes()

func TestListen_InvalidName(t *testing.T) {
	const path = `C:\csi-proxy-is-no-pipe`
	if listener, err := pipe.Listen(t.Context(), path, pipe.Config{}); err == nil {
		listener.Close()
		t.Errorf("listens on %s", path)
	}
}

func TestListen_SecurityDescriptor(t *testing.T) {
	const admitsUsers = pipe.DefaultSecurityDescriptor + "(A;;0x12019b;;;S-1-5-93-2-2)"
	listener, err := pipe.Listen(t.Context(), pipetest.NewPath(), pipe.Config{SecurityDescriptor: admitsUsers})
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	for _, sddl := range []string{
		"nonsense",
		"D:(A;;GA;;;)",
		"O:SYG:SY",            // no access list
		"D:NO_ACCESS_CONTROL", // a null one; Wine takes it for an empty one
		"D:",                  // an empty one
		"D:P",
		"D:P(D;;GA;;;WD)", // no account
		"D:P(A;;GA;;;SY)(A;;GA;;;WD)",
		"D:P(A;;GA;;;SY)(A;;GRGW;;;AN)",
	} {
		if err := pipe.ValidateSecurityDescriptor(sddl); !errors.Is(err, winerr.Invalid) {
			t.Errorf("%s: got %v, want an error of kind %q", sddl, err, winerr.Invalid)
		}
		if listener, err := pipe.Listen(t.Context(), pipetest.NewPath(), pipe.Config{SecurityDescriptor: sddl}); err == nil {
			listener.Close()
			t.Errorf("listens with %s", sddl)
		}
	}
}
