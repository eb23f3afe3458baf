//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/servetest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

var everyCall = flag.Bool("crash.every", false, "end the simulator before every call to Windows, not only some, which takes minutes")

// someCalls is every how many calls the simulator ends before the call, without -crash.every.
const someCalls = 11

// crashModel is a node on which nothing happens at once. Its time is virtual.
const crashModel = `
storage: {volumeArrival: 1s, formatTime: 20s, growDelay: 1s, capacityDelay: 1s, createDiskMSR: late, serviceDelay: 2s, sanPolicy: offline-shared}
disks:
  - {size: 64GiB, system: true, layout: gpt, partitions: [{volume: {letter: C}}]}
  - {size: 1GiB, growsTo: 2GiB, bus: sas, serial: DATA}
services: [{name: MSiSCSI, startType: automatic}]
files: [{path: 'C:\var\lib\kubelet\plugins\crash'}, {path: 'C:\var\lib\kubelet\pods'}]
smbServers: [{name: files, shares: [{name: data}], accounts: [{user: csi, password: csi-Pa55}]}]
iscsi:
  pnpDelay: 1s
  portals: [{address: 10.0.0.10, delay: 1s}]
  targets: [{iqn: 'iqn.2025-01.com.example:guarded', chap: {user: winsim, secret: winsim-secret-1}, luns: [{size: 1GiB}]}]
`

// TestCrash ends the simulator, as kill -9 does, at a call to Windows in the life of a volume:
// after each call that changes the node, and before some of all. The driver retries what it was
// about, with the simulator that is started next, until the life is complete. Nothing may be
// lost, done twice or left behind.
//
// Between two changes the node does not change, so these are all the states that a process can
// leave behind.
func TestCrash(t *testing.T) {
	for name, live := range map[string]func() life{"disk": onDisk, "disk with format options": onDiskWithOptions, "iSCSI": onTarget, "SMB": onShare} {
		t.Run(name, func(t *testing.T) {
			model, err := winsim.LoadModel(strings.NewReader(crashModel), "crash.yaml")
			require.NoError(t, err)
			for half, calls := range countCalls(t, model, live()) {
				for _, fault := range crashes(calls) {
					t.Run(fmt.Sprintf("%d-%s", half+1, fault.name), func(t *testing.T) {
						t.Parallel()
						crashed := &crashedNode{t: t, model: model, dir: servetest.Dir(t), state: filepath.Join(t.TempDir(), "node.json")}
						crashed.live(live(), half, fault)
					})
				}
			}
		})
	}
}

// crash is a moment to end the simulator.
type crash struct {
	name, yaml string
	late       bool // so that a life may be over before
}

// changing are the calls that change a node.
var changing = []string{
	"CreateDisk", "SetDriveLayout", "GrowPartition", "SetDiskAttributes", "UpdateDisk", "UpdateDriveSize", "RescanAdapter",
	"OnlineVolume", "Format", "FormatLegacy", "SetRootSecurity", "SetVolumeLabel", "RefreshStorageCache", "ExtendVolume",
	"CreateDirectory", "CreateDirectoryLink", "Remove", "SetMountPoint", "DeleteMountPoint",
	"CreateSMBMapping", "RemoveSMBMapping",
	"AddSendTargetPortal", "RefreshSendTargetPortal", "RemoveSendTargetPortal", "Login", "Logout", "RemovePersistentTarget",
}

func crashes(calls calls) (all []crash) {
	every := someCalls
	if *everyCall {
		every = 1
	}
	for n := 1; n <= calls.total; n += every {
		// Polling makes the number of calls vary a little.
		late := n > calls.total-calls.total/10
		all = append(all, crash{fmt.Sprintf("before call %d of %d", n, calls.total), fmt.Sprintf("{nth: %d, crash: before}", n), late})
	}
	for _, call := range changing {
		for n := 1; n <= calls.byName[call]; n++ {
			all = append(all, crash{fmt.Sprintf("after %s %d", call, n), fmt.Sprintf("{call: %s, nth: %d, crash: after}", call, n), false})
		}
	}
	return all
}

// calls are how many calls to Windows half a life takes.
type calls struct {
	total  int // that a fault can hit: not those whose caller has left
	byName map[string]int
}

// countCalls lives a life without a crash, and counts the calls in both halves.
func countCalls(t *testing.T, model winsim.Model, l life) [2]calls {
	t.Helper()
	node, err := winsim.New(model)
	require.NoError(t, err)
	dir := servetest.Dir(t)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		stopped <- serve.Run(ctx, node, serve.Config{Config: daemon.Config{SocketDir: dir, StopTimeout: time.Second, Format: l.format}})
	}()
	defer func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	clients, closeAll, err := dialNode(ctx, dir)
	require.NoError(t, err)
	defer closeAll()
	counter, err := node.Inject(winsim.Fault{Do: func(*winsim.Node) {}})
	require.NoError(t, err)
	take := func(steps []step) calls {
		node.ResetCalls()
		before := counter.Hits()
		for _, s := range steps {
			if err := s.do(ctx, clients); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
		}
		return calls{counter.Hits() - before, node.Calls()}
	}
	first := take(l.first)
	require.NoError(t, l.write(node))
	second := take(l.second)
	require.NoError(t, l.check(ctx, node), "without a crash:")
	return [2]calls{first, second}
}

// crashedNode is a simulator that ends at a bad moment, once.
type crashedNode struct {
	t          *testing.T
	model      winsim.Model
	dir, state string
	flags      []string
	sim        *sim
	ended      chan struct{}
	starts     int
}

// start starts the simulator, with a fault or none.
func (c *crashedNode) start(fault string) {
	c.t.Helper()
	files := map[string]string{"crash.yaml": crashModel, "faults.yaml": "faults: [" + fault + "]"}
	for name, text := range files {
		require.NoError(c.t, os.WriteFile(filepath.Join(filepath.Dir(c.state), name), []byte(text), 0o600))
	}
	dir := filepath.Dir(c.state)
	args := []string{
		"-socket-dir", c.dir, "-model", filepath.Join(dir, "crash.yaml"), "-state", c.state, "-stop-timeout", "1s",
		"-heal-stale-mounts", "off", "-metrics-storage=false",
	} // its calls at the start would meet the fault
	args = append(args, c.flags...)
	if fault != "" {
		args = append(args, "-faults", filepath.Join(dir, "faults.yaml"))
	}
	s := command(c.t, args...)
	s.cmd.Env = append(os.Environ(), "CSI_PROXY_SIM_TEST_MAIN=virtual time")
	require.NoError(c.t, s.cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.cmd.Wait() // killed, in the end always
	}()
	c.sim, c.ended = s, ended
	c.starts++
}

func (c *crashedNode) kill() {
	_ = c.sim.cmd.Process.Kill() // it may have ended before
	<-c.ended
}

// live lives a life with a crash in one of its halves.
func (c *crashedNode) live(l life, half int, fault crash) {
	c.t.Helper()
	c.flags = l.flags()
	for i, steps := range [][]step{l.first, l.second} {
		yaml := ""
		if i == half {
			yaml = fault.yaml
		}
		c.start(yaml)
		starts := c.starts
		c.take(steps)
		if crashes := c.starts - starts; i == half && crashes != 1 && !(fault.late && crashes == 0) {
			c.t.Errorf("the simulator was started again %d times, want 1", crashes)
		}
		c.kill()
		if i == 0 {
			c.withNode(l.write)
		}
	}
	c.withNode(func(node *winsim.Node) error { return l.check(c.t.Context(), node) })
}

// take takes steps, each until it succeeds.
func (c *crashedNode) take(steps []step) {
	c.t.Helper()
	const maxAttempts = 20
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	clients, closeAll, err := dialNode(ctx, c.dir)
	if err != nil {
		c.t.Fatalf("%v\n%s", err, c.sim.output)
	}
	defer func() { closeAll() }()
	for _, s := range steps {
		err := errors.New("not tried")
		for attempt := 0; attempt < maxAttempts && err != nil; attempt++ {
			if err = s.do(ctx, clients); err == nil {
				break
			}
			if status.Code(err) != codes.Unavailable {
				c.t.Logf("%s: %v", s.name, err)
				continue
			}
			select {
			case <-c.ended:
			case <-ctx.Done():
				c.t.Fatalf("%s: %v, but the simulator has not ended", s.name, err)
			}
			closeAll()
			c.start("")
			if clients, closeAll, err = dialNode(ctx, c.dir); err != nil {
				c.t.Fatal(err)
			}
			err = errors.New("not tried again")
		}
		if err != nil {
			c.t.Fatalf("%s never succeeds: %v", s.name, err)
		}
	}
	select {
	case <-c.ended: // after the last answer, for a fault that waits for another change
		c.start("")
	default:
	}
}

// withNode accesses the node while no simulator uses it.
func (c *crashedNode) withNode(do func(*winsim.Node) error) {
	c.t.Helper()
	saved, err := os.ReadFile(c.state)
	require.NoError(c.t, err)
	var model winsim.Model
	require.NoError(c.t, json.Unmarshal(saved, &model))
	node, err := winsim.New(model)
	require.NoError(c.t, err)
	if err := do(node); err != nil {
		c.t.Errorf("what is left: %v", err)
	}
	if model, err = node.Model(); err != nil {
		c.t.Fatal(err)
	}
	next, err := json.Marshal(model)
	require.NoError(c.t, err)
	require.NoError(c.t, os.WriteFile(c.state, next, 0o600))
}
