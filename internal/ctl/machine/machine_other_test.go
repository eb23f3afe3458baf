//go:build !windows

package machine_test

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/machine"
)

func TestNotWindows(t *testing.T) {
	_, policy := machine.SANPolicy()
	_, paths := machine.LongPaths()
	for what, err := range map[string]error{"SAN policy": policy, "long paths": paths} {
		if !errors.Is(err, machine.ErrNotWindows) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
