//go:build unix

// Package soak lets many clients work on one emulated node at a time that is hard on them:
// calls fail, are delayed and cancelled, connections break, the server restarts. At the
// end nothing may be lost, done twice or left behind.
//
//	make soak                  # a minute
//	make soak SOAKTIME=10s SEED=7
//
// What each client does is derived from the seed. What happens to it is, too, but not the
// order in which the calls of all clients meet.
package soak

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/servetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var (
	soakTime = flag.Duration("soak.time", 2*time.Second, "how long the clients work")
	soakSeed = flag.Uint64("soak.seed", 1, "what the clients do follows from it")
)

const (
	clientCount = 64
	diskCount   = 200 // besides the system's
	serverCount = 8   // of shares: each client has one, of one of them
	workDir     = `C:\var\lib\kubelet`
)

// TestMain keeps the log quiet: a call that fails is not news here.
func TestMain(m *testing.M) {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	m.Run()
}

// TestSoak is the whole of it.
func TestSoak(t *testing.T) {
	t.Logf("seed %d for %v; to repeat: make soak SOAKTIME=%v SEED=%d", *soakSeed, *soakTime, *soakTime, *soakSeed)
	before := resourcesNow(t)
	soak(t)
	if t.Failed() {
		t.Logf("this was seed %d: make soak SOAKTIME=%v SEED=%d", *soakSeed, *soakTime, *soakSeed)
		return
	}
	before.wait(t)
}

func soak(t *testing.T) {
	t.Helper()
	node, err := winsim.New(model())
	require.NoError(t, err)
	dir := servetest.Dir(t)
	s := &server{t: t, node: node, dir: dir}
	s.start()

	clients := make([]*worker, clientCount)
	tally := newTally()
	for i := range clients {
		clients[i] = newWorker(t, node, dir, tally, i)
	}
	working, rest := context.WithTimeout(t.Context(), *soakTime)
	defer rest()
	var everybody, trouble sync.WaitGroup
	trouble.Go(func() { makeTrouble(working, t, node, s, tally) })
	for _, c := range clients {
		everybody.Go(func() { c.work(working) })
	}
	everybody.Wait()
	trouble.Wait()
	// From here on nothing goes wrong, so everything has to succeed. What was put off after a
	// failure, such as another look for links to shares, is due.
	require.NoError(t, node.Sleep(t.Context(), time.Hour))
	for _, c := range clients {
		everybody.Go(func() { c.finish(t.Context()) })
	}
	everybody.Wait()
	// A look for links that began in bad times may have failed only now, and then the removal
	// of a mapping was put off. A later retry succeeds.
	require.NoError(t, node.Sleep(t.Context(), time.Hour))
	for _, c := range clients {
		everybody.Go(func() { c.unmap(t.Context()) })
	}
	everybody.Wait()
	for _, c := range clients {
		c.close()
	}
	s.stop()
	checkNode(t, node, clients)
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("sockets are left: %v", left)
	}
	t.Log(tally)
}

// model is a node with many disks, shares and targets.
func model() winsim.Model {
	model := winsim.Default()
	model.Seed = *soakSeed
	model.Disks = model.Disks[:1]
	for i := range diskCount {
		model.Disks = append(model.Disks, winsim.Disk{Size: winsim.GiB, Serial: fmt.Sprintf("SOAK%04d", i+1)})
	}
	model.Storage.VolumeArrival, model.Storage.FormatTime = 100*time.Millisecond, time.Second
	model.SMBServers = nil
	for i := range serverCount {
		server := winsim.SMBServer{Name: fmt.Sprintf("files%d", i), Accounts: []winsim.SMBAccount{{User: "csi", Password: "csi-Pa55"}}}
		for j := range clientCount / serverCount {
			server.Shares = append(server.Shares, winsim.SMBShare{Name: fmt.Sprintf("share%d", j)})
		}
		model.SMBServers = append(model.SMBServers, server)
	}
	model.ISCSI.Targets = nil
	for i := range clientCount {
		model.ISCSI.Targets = append(model.ISCSI.Targets, winsim.ISCSITarget{IQN: target(i), LUNs: []winsim.Disk{{Size: winsim.GiB}}})
	}
	return model
}

// server is the daemon, which restarts again and again.
type server struct {
	t    *testing.T
	node *winsim.Node
	dir  string

	cancel  context.CancelFunc
	done    chan error
	process *process
}

func (s *server) start() {
	s.t.Helper()
	// A new process knows nothing of what the one before it did, so its hosts are new.
	p := &process{Node: s.node}
	ctx, cancel := context.WithCancel(klog.NewContext(s.t.Context(), klog.Logger{})) // no logs
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- daemon.Serve(ctx, daemon.Config{
			Hosts: daemon.HostsOn(p), WorkingDirs: []string{workDir}, SocketDir: s.dir,
			StopTimeout: 50 * time.Millisecond, Ready: func() { close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-done:
		s.t.Errorf("start the server: %v", err)
		done <- err
	}
	s.cancel, s.done, s.process = cancel, done, p
}

func (s *server) stop() {
	s.t.Helper()
	s.cancel()
	if err := <-s.done; err != nil {
		s.t.Errorf("the server ended: %v", err)
	}
	s.process.end()
}

// makeTrouble lets calls fail and restarts the server, until ctx ends.
func makeTrouble(ctx context.Context, t *testing.T, node *winsim.Node, s *server, tally *tally) {
	t.Helper()
	random := rand.New(rand.NewPCG(*soakSeed, clientCount))
	// Codes that any call can answer on a bad day: not ready, in use, busy, an error of the
	// device, no more memory, a timeout.
	codes := []uint32{21, 32, 170, 1117, 8, 121}
	for round := 1; ctx.Err() == nil; round++ {
		fault := winsim.Fault{Chance: 0.02 + 0.1*random.Float64(), Error: codes[random.IntN(len(codes))]}
		if random.IntN(3) == 0 {
			fault.Error, fault.Delay = 0, time.Duration(random.IntN(20))*time.Millisecond+time.Millisecond
		}
		injected, err := node.Inject(fault)
		if err != nil {
			t.Error(err)
			return
		}
		pause(ctx, time.Duration(100+random.IntN(400))*time.Millisecond)
		injected.Remove()
		tally.add("calls to Windows that a fault hit", injected.Hits())
		if round == 2 || random.IntN(10) == 0 { // once in any case
			s.stop()
			s.start() //nolint:contextcheck // it lives longer than the trouble
			tally.add("restarts of the server", 1)
		}
	}
}

// pause waits, but not longer than the work lasts.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// checkNode looks for what was lost, done twice or left behind.
func checkNode(t *testing.T, node *winsim.Node, clients []*worker) {
	t.Helper()
	if open := node.OpenDirectories(); open != 0 {
		t.Errorf("%d directories are open", open)
	}
	if sessions := node.Describe().ISCSI.Sessions; len(sessions) > 0 {
		t.Errorf("sessions are left: %+v", sessions)
	}
	mappings, err := node.SMBMappings(t.Context())
	if err != nil || len(mappings) > 0 {
		t.Errorf("mappings are left: %+v, %v", mappings, err)
	}
	for _, c := range clients {
		for _, d := range c.disks {
			info, err := node.DiskInfo(d.number)
			if err != nil {
				t.Error(err)
				continue
			}
			data := 0
			for _, p := range info.Partitions {
				if p.Type == "basic" {
					data++
				}
			}
			if want := min(1, d.partitions); data != want {
				t.Errorf("disk %d has %d data partitions, want %d", d.number, data, want)
			}
			for name, content := range d.written {
				if got, err := node.ReadFile(d.volume + name); err != nil || got != content {
					t.Errorf("disk %d: %s contains %q, want %q: %v", d.number, name, got, content, err)
				}
			}
		}
	}
}

// resources are what this process has.
type resources struct{ goroutines, files int }

func resourcesNow(t *testing.T) resources {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return resources{runtime.NumGoroutine(), len(files)}
}

// wait returns when there is nothing more than before. What has been closed needs a moment to
// end.
func (r resources) wait(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; runtime.Gosched() {
		now := resourcesNow(t)
		if now.goroutines <= r.goroutines && now.files <= r.files {
			return
		}
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%+v are left of %+v before:\n%s", now, r, stacks[:runtime.Stack(stacks, true)])
		}
	}
}
