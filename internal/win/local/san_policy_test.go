package local

import "testing"

func TestSANPolicy(t *testing.T) {
	for policy, want := range map[SANPolicy]string{
		0: "default of Windows",
		1: "online all",
		2: "offline shared",
		3: "offline all",
		4: "offline internal",
		9: "unknown (9)",
	} {
		if got := policy.String(); got != want {
			t.Errorf("policy %d is %q, want %q", uint32(policy), got, want)
		}
	}
}
