package machine_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/machine"
)

func TestSettings(t *testing.T) {
	if policy, err := machine.SANPolicy(); err != nil {
		t.Errorf("SAN policy: got %q, %v", policy, err)
	}
	if _, err := machine.LongPaths(); err != nil {
		t.Errorf("long paths: %v", err)
	}
}
