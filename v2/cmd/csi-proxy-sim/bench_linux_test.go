package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// BenchmarkProcess measures the program as it is released: its size, how long it takes from
// its start to its first answer, and its memory before and after 64 callers were there.
func BenchmarkProcess(b *testing.B) {
	program := filepath.Join(b.TempDir(), "csi-proxy-sim")
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace,nethttpomithttp2", "-ldflags=-s -w", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, output)
	}
	info, err := os.Stat(program)
	require.NoError(b, err)
	var idle, loaded float64
	for b.Loop() {
		dir := serve.SocketDir(b)
		s := command(b, "-socket-dir", dir)
		s.cmd.Path = program
		require.NoError(b, s.cmd.Start())
		awaitSocket(b, filepath.Join(dir, "csi-proxy-volume-v2alpha1.sock")) // the last
		idle = resident(b, s.cmd.Process.Pid)
		c := connect(b, dir)
		exists(b, c)
		b.StopTimer() // it has answered
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				for range 100 {
					exists(b, c)
				}
			})
		}
		callers.Wait()
		loaded = resident(b, s.cmd.Process.Pid)
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait() // killed, as we wanted
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "start-ms")
	b.ReportMetric(idle, "idle-MB")
	b.ReportMetric(loaded, "loaded-MB")
	b.ReportMetric(float64(info.Size())/1e6, "binary-MB")
	b.ReportMetric(0, "ns/op") // start-ms says it
}

func exists(b *testing.B, c *fsv1.Client) {
	b.Helper()
	response, err := c.PathExists(b.Context(), &filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	if err != nil || !response.Exists {
		b.Errorf("%v, %v", response, err)
	}
}

// awaitSocket is quicker than the clients' waiting.
func awaitSocket(b *testing.B, path string) {
	b.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Microsecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s does not come", path)
		}
	}
}

// resident is the memory of a process, in megabytes.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		b.Fatal(err)
	}
	return float64(kib) * 1024 / 1e6
}
