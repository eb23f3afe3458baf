package local

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
)

// TestMachine_Log: at -v=6 every call to this machine is logged, below none. The machine is made once, so that its bounds
// are those of the process.
func TestMachine_Log(t *testing.T) {
	log := klogtest.Verbose(t, 5)
	_, _ = newMachine().VolumeIDs(t.Context()) // whatever this system answers
	if log.Len() > 0 {
		t.Errorf("the log has %s", log)
	}
	log = klogtest.Verbose(t, 6)
	_, _ = newMachine().VolumeIDs(t.Context())
	if text := log.String(); strings.Count(text, `method="VolumeIDs"`) != 1 {
		t.Errorf("the log has %s", text)
	}
	if once := Machine(); once != Machine() {
		t.Error("there are two machines")
	}
}
