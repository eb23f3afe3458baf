//go:build windows && wine

// Package daemon tests csi-proxy.exe from outside: as a program in a console and as a
// service, with clients on its named pipes. It needs a machine without a daemon, and an
// administrator; package suite runs it under Wine.
package daemon

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	program  = flag.String("daemon", `C:\csi-proxy.exe`, "`path` of the program to test")
	attached = flag.Bool("attached", false, "run TestAttached, with whatever serves already")
)

// timeLimit is for whatever must happen at all. Loaded machines are slow.
const timeLimit = time.Minute

// kubelet is the directory in which the daemon lets clients work.
const kubelet = `C:\var\lib\kubelet`

// TestMain lets the test binary play other parts: that of a client that is killed, those of attackers, that of
// services which the daemon starts and stops, and that of a server to compare it with.
func TestMain(m *testing.M) {
	switch {
	case slices.Contains(os.Args, victimRole):
		playVictim(os.Args[len(os.Args)-1])
	case slices.Contains(os.Args, attackRole):
		playAttack(os.Args[len(os.Args)-2], os.Args[len(os.Args)-1])
	case slices.Contains(os.Args, serviceRole):
		playService(os.Args[len(os.Args)-1])
	case slices.Contains(os.Args, echoRole):
		playEcho()
	default:
		m.Run()
	}
}

// process is a program that was started.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  string // the file with its output
	done chan struct{}
}

// launch starts a program, which is killed when the test ends.
func launch(t *testing.T, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), name, args...), log: filepath.Join(t.TempDir(), "output"), done: make(chan struct{})}
	output, err := os.Create(p.log)
	require.NoError(t, err)
	defer output.Close() // the program has it, too
	p.cmd.Stdout, p.cmd.Stderr = output, output
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code says it
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) pid() uint32 { return uint32(p.cmd.Process.Pid) }

// kill ends the program, if it has not yet ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

func (p *process) isRunning() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// exit waits for the end of the program.
func (p *process) exit() (code int, output string) {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(timeLimit):
		p.t.Fatalf("it does not end:\n%s", p.output())
	}
	return p.cmd.ProcessState.ExitCode(), p.output()
}

func (p *process) output() string {
	text, _ := os.ReadFile(p.log) // none says enough
	return string(text)
}

// start starts the daemon in a console and waits until every endpoint answers.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := launch(t, *program, args...)
	wantAllServing(t)
	return p
}

// wantAllServing waits for every endpoint, and asks it for its health. It is also the client
// that every pipe has to have first under Wine, where that one is not served: our clients look
// at a pipe before they use it.
func wantAllServing(t *testing.T) {
	t.Helper()
	for _, e := range grpcapi.Endpoints() {
		wantServing(t, e)
	}
}

func wantServing(t *testing.T, e grpcapi.Endpoint) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	conn, err := client.Connect(ctx, e.Group, version(t, e), client.WithWait())
	if err != nil {
		t.Fatalf("%s: %v", e.Name(), err)
	}
	defer conn.Close()
	for _, service := range []string{"", e.ServiceName()} {
		answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service}, patiently)
		if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			t.Errorf("%s: the health of %q is %v, %v", e.Name(), service, answer, err)
		}
	}
}

func version(t *testing.T, e grpcapi.Endpoint) apiversion.Version {
	t.Helper()
	v, err := apiversion.NewVersion(e.Version)
	require.NoError(t, err)
	return v
}

// wantPipesFree checks that no process has any of the pipes.
func wantPipesFree(t *testing.T) {
	t.Helper()
	for _, e := range grpcapi.Endpoints() {
		conn, err := client.Connect(t.Context(), e.Group, version(t, e))
		if err == nil {
			_ = conn.Close() // unused
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want no such pipe", e.Name(), err)
		}
	}
}

// connect returns a client of the file system group.
func connect(t *testing.T) *fsv1.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
	defer cancel()
	c, err := fsv1.New(ctx, client.WithWait())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// patiently is for calls to a server that runs: on a busy machine all instances of its pipe can be taken for
// longer than a client waits otherwise.
var patiently = grpc.WaitForReady(true)

// ask makes a call, which must not take for ever.
func ask(ctx context.Context, c *fsv1.Client, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	_, err := c.PathExists(ctx, &filesystemv1.PathExistsRequest{Path: kubelet}, options...)
	return err
}

// eventually waits until something holds. Windows has no event for it.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(timeLimit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it does not happen that %s", what)
		}
	}
}

// figure logs what was measured, for the summary of the suite.
func figure(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("figure: "+format, args...)
}

// oneLine is for messages with the output of a program.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
