package win_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

func TestSANPolicy(t *testing.T) {
	for policy, want := range map[win.SANPolicy]string{
		0: "default of Windows",
		1: "online all",
		2: "offline shared",
		3: "offline all",
		4: "offline internal",
		9: "unknown (9)",
	} {
		if got := policy.String(); got != want {
			t.Errorf("policy %d is %q, want %q", uint64(policy), got, want)
		}
	}
}
