package daemon_test

import (
	"os"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/service"
)

// TestMain_FillsStreams: a service has no standard streams. What has kept one can write to it.
func TestMain_FillsStreams(t *testing.T) {
	before := os.Stderr
	t.Cleanup(func() { os.Stderr = before })
	kept := os.NewFile(0, "stderr")
	os.Stderr = kept
	if _, err := kept.WriteString("x"); err == nil {
		t.Fatal("handle 0 can be written to")
	}
	run(t, program(&manager{}, func(*daemon.Flags, service.Notify) error { return nil }), "-version")
	if _, err := kept.WriteString("x"); err != nil {
		t.Error(err)
	}
}
