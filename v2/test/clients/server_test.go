//go:build unix

package clients

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// stopLimit is the time for a server to end. It has no calls to wait for.
const stopLimit = 10 * time.Second

// server is a running csi-proxy-sim whose list of disks is long.
type server struct {
	*exec.Cmd
	filesystem, disk string // sockets
	log              bytes.Buffer
}

func start(t *testing.T) *server {
	t.Helper()
	dir := serve.SocketDir(t)
	model := "files: [{path: 'C:\\var\\lib\\kubelet'}]\ndisks:\n- {size: 64GiB, system: true, layout: gpt, partitions: [{volume: {letter: C}}]}\n"
	for i := range 200 {
		model += fmt.Sprintf("- {size: 1GiB, serial: SERIAL-%012d, page83: [{text: VENDOR  data disk %068d}]}\n", i, i)
	}
	file := filepath.Join(dir, "model.yaml")
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	s := &server{
		Cmd:        exec.CommandContext(context.WithoutCancel(t.Context()), *sim, "-socket-dir", dir, "-model", file),
		filesystem: filepath.Join(dir, "csi-proxy-filesystem-v1.sock"),
		disk:       filepath.Join(dir, "csi-proxy-disk-v1.sock"),
	}
	s.Stderr = &s.log
	out, err := s.StdoutPipe()
	require.NoError(t, errors.Join(err, s.Start()))
	if lines := bufio.NewScanner(out); !lines.Scan() || !strings.HasPrefix(lines.Text(), "Ready ") {
		s.stop(t)
		t.Fatalf("%s does not serve", *sim)
	}
	return s
}

// stop fails the test if the server does not end by itself.
func (s *server) stop(t *testing.T) {
	t.Helper()
	_ = s.Process.Signal(os.Interrupt)
	defer time.AfterFunc(stopLimit, func() { _ = s.Process.Kill() }).Stop()
	require.NoError(t, s.Wait(), "the server has not stopped:")
	if t.Failed() {
		t.Logf("its log:\n%s", &s.log)
	}
}
