package doctor_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/doctor"
)

func TestSettings(t *testing.T) {
	if policy, err := doctor.SANPolicy(); err != nil {
		t.Errorf("SAN policy: got %q, %v", policy, err)
	}
	if _, err := doctor.LongPaths(); err != nil {
		t.Errorf("long paths: %v", err)
	}
}
