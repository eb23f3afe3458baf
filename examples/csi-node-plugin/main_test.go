package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestRun starts the program with a daemon, which an emulated node serves.
func TestRun(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	serve.Start(t, node)
	dir, err := os.MkdirTemp("", "csi") // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "csi.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil { // what an earlier process left behind
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, []string{"-mode=proxy", "-endpoint", "unix://" + socket, "-node-id", "node-1"}, io.Discard)
	}()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	info, err := csi.NewNodeClient(conn).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.NodeId != "node-1" {
		t.Errorf("NodeGetInfo answers %v, %v", info, err)
	}
	if _, err := csi.NewIdentityClient(conn).Probe(t.Context(), &csi.ProbeRequest{}); err != nil {
		t.Errorf("Probe answers %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}

// TestRun_LibraryElsewhere shows that the program does not start in library mode where it could
// not work.
func TestRun_LibraryElsewhere(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the library works on Windows")
	}
	socket := filepath.Join(t.TempDir(), "csi.sock")
	err := run(t.Context(), []string{"-mode=library", "-endpoint", "unix://" + socket, "-node-id", "node-1"}, io.Discard)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), runtime.GOOS) {
		t.Errorf("got %v, want an error that names the system", err)
	}
	if _, err := os.Stat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is there: %v", err)
	}
}

// TestListen_NewNode: on a node that has never had the driver, the socket's directory is missing.
func TestListen_NewNode(t *testing.T) {
	dir, err := os.MkdirTemp("", "csi") // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "plugins", "driver", "csi.sock")
	for range 2 {
		listener, err := listen(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSocketPath has the spellings of manifests that are in use.
func TestSocketPath(t *testing.T) {
	for endpoint, want := range map[string]string{
		`unix://C:\csi\csi.sock`:    `C:\csi\csi.sock`,
		`unix:/c:\var\lib\csi.sock`: `c:\var\lib\csi.sock`,
		`unix:///C:\csi\csi.sock`:   `C:\csi\csi.sock`,
		"unix:/csi/csi.sock":        "/csi/csi.sock",
		"unix:///tmp/csi.sock":      "/tmp/csi.sock",
	} {
		if got, err := socketPath(endpoint); got != want || err != nil {
			t.Errorf("%s: got %s, %v; want %s", endpoint, got, err, want)
		}
	}
}

func TestRun_Refuses(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	for text, args := range map[string][]string{
		"set -node-id or NODE_NAME":     {"-mode=library"},
		"-mode must be proxy or":        {"-node-id=n", "-mode=both"},
		"-endpoint must be unix://PATH": {"-node-id=n", "-endpoint=tcp://:1"},
		`unexpected argument "library"`: {"-node-id=n", "library"},
		"folder of Windows":             {"-node-id=n", "-mode=library", `-kubelet-path=C:\`},
	} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v: got %v, want %q", args, err, text)
		}
	}
}
