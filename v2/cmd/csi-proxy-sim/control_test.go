//go:build unix

package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/control"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestProcess_Control: a change reaches the node, its password does not reach the log, and its address is not shared.
func TestProcess_Control(t *testing.T) {
	dir := serve.SocketDir(t)
	address := filepath.Join(dir, "control.sock")
	s := command(t, "-socket-dir", dir, "-control", address, "-v=2")
	require.NoError(t, s.cmd.Start())
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	conn, err := client.Connect(ctx, control.Group, apiversion.NewVersionOrPanic(control.Version), client.WithWait(), client.WithPipePath(address))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.output)
	}
	defer conn.Close()
	change := wrapperspb.String(`{smbPasswords: [{server: files, user: csi, password: new-s3cret}], restartDaemon: true}`)
	require.NoError(t, conn.Invoke(ctx, control.Apply, change, &wrapperspb.StringValue{}))
	connect(t, dir) // to the next daemon
	other := command(t, "-socket-dir", serve.SocketDir(t), "-control", address)
	if code, output := other.exit(); code != daemon.ExitTaken {
		t.Errorf("a second simulator at the same address: exit code %d\n%s", code, output)
	}
	require.NoError(t, s.cmd.Process.Kill())
	_ = s.cmd.Wait() // killed, as we wanted
	if log := s.output.String(); strings.Contains(log, "s3cret") || !strings.Contains(log, "Apply") {
		t.Errorf("the log lacks the request or shows the password:\n%s", log)
	}
}
