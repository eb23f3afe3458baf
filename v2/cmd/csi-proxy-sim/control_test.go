//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon/controlv1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/servetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestProcess_Control: a node with a state file keeps what was changed, passwords too.
func TestProcess_Control(t *testing.T) {
	dir, state := servetest.Dir(t), filepath.Join(t.TempDir(), "state")
	address := filepath.Join(dir, "control.sock")
	start := func() (*sim, controlv1.ControlClient) {
		s := command(t, "-socket-dir", dir, "-state", state, "-control", address, "-v=2")
		require.NoError(t, s.cmd.Start())
		ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
		defer cancel()
		conn, err := client.Connect(ctx, "sim", apiversion.NewVersionOrPanic("v1"), client.WithWait(), client.WithPipePath(address))
		if err != nil {
			t.Fatalf("%v\n%s", err, s.output)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return s, controlv1.NewControlClient(conn)
	}
	first, c := start()
	attached, err := c.AttachDisk(t.Context(), &controlv1.AttachDiskRequest{SizeBytes: 1 << 30, Serial: "kept"})
	require.NoError(t, err)
	_, err = c.SetPassword(t.Context(), &controlv1.SetPasswordRequest{Server: "files", User: "csi", Password: "new-s3cret"})
	require.NoError(t, err)
	if saved, err := os.ReadFile(state); err != nil || !strings.Contains(string(saved), "new-s3cret") {
		t.Errorf("the file does not keep the password: %v", err)
	}
	require.NoError(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait() // killed, as we wanted
	if strings.Contains(first.output.String(), "s3cret") || !strings.Contains(first.output.String(), "SetPassword") {
		t.Errorf("the log lacks the request or shows the password:\n%s", first.output)
	}

	second, c := start()
	node, err := c.DescribeNode(t.Context(), &controlv1.DescribeNodeRequest{})
	require.NoError(t, err)
	if last := node.Disks[len(node.Disks)-1]; last.DiskNumber != attached.DiskNumber || last.Serial != "kept" {
		t.Errorf("after a restart the node has %v", node.Disks)
	}
	other := command(t, "-socket-dir", servetest.Dir(t), "-control", address)
	if code, output := other.exit(); code != daemon.ExitTaken {
		t.Errorf("a second simulator at the same address: exit code %d\n%s", code, output)
	}
	_ = second.cmd.Process.Kill()
	_ = second.cmd.Wait()
}
