package mountertest_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The first test of a driver: Windows fails to format once, and the kubelet's next call succeeds.
func TestStage_FormatFailsOnce(t *testing.T) {
	node, err := winsim.New(winsim.Azure()) // a node of a cloud, with blank disks at LUN 0 and 1
	if err != nil {
		t.Fatal(err)
	}
	m, err := mounter.New(t.Context(), mountertest.Library(node)) // on a real node: mounter.New(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	fault, err := node.Inject(winsim.Fault{Call: "Format", Times: 1, Error: 1117})
	if err != nil {
		t.Fatal(err)
	}
	const staging = `C:\var\lib\kubelet\plugins\csi.example.com\globalmount`
	request := mounter.StageRequest{Path: staging, Source: mounter.Disk{LUN: "0", Adapter: "1"}}
	if _, err := m.Stage(t.Context(), request); err == nil || fault.Hits() != 1 {
		t.Errorf("the format has not failed: %v", err)
	}
	if _, err := m.Stage(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := node.WriteFile(staging+`\data.txt`, "works"); err != nil { // as a pod does
		t.Error(err)
	}
}

// The other mode: a driver notices that the daemon is away.
func TestDaemonAway(t *testing.T) {
	node, err := winsim.New(winsim.Azure())
	if err != nil {
		t.Fatal(err)
	}
	d := mountertest.NewDaemon(t, node) // logs to t.Log
	m, err := mounter.New(t.Context(), d.Option())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	d.Stop()
	if _, err := m.Stats(t.Context(), `C:\x`); failure.ClassOf(err) != failure.Unavailable {
		t.Error(err)
	}
	d.Start()
}
