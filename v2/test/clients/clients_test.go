//go:build unix

// Package clients tests the server with other gRPC than that of Go.
package clients

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	sim    = flag.String("clients.sim", "", "the `file` of csi-proxy-sim; without it the tests are skipped")
	node   = flag.String("clients.node", "", "the `file` of Node.js that install.sh has made")
	python = flag.String("clients.python", "", "the `file` of Python that install.sh has made")
)

// required makes tests fail where a program is missing, so that skipped tests do not look like passed ones.
const required = "CSI_PROXY_CLIENTS_REQUIRED"

// limit is the time for one client. Nothing takes that long.
const limit = 2 * time.Minute

// need skips the test unless these programs exist.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if program == "" {
			t.Skipf("make test-clients runs this; to fail without Node.js and Python, set %s=1", required)
		}
		if _, err := os.Stat(program); err != nil && os.Getenv(required)+os.Getenv("CI") != "" {
			t.Fatalf("the program is required, and not there: %v", err)
		} else if err != nil {
			t.Skip(err)
		}
	}
}

// scenarios are what client.js and client.py do. The former explains kind, many and more.
var scenarios = []struct {
	name        string
	kind        string
	many, more  int
	list        bool // disks, rather than look for a path
	pauseClient time.Duration
	pauseServer time.Duration
}{
	{name: "64 callers", kind: "calls", many: 64, more: 50},
	{name: "1500 calls at once", kind: "calls", many: 1500, more: 1, list: true},
	{name: "cancellations", kind: "cancel", many: 40, more: 200, list: true},
	{name: "the client pauses", kind: "loop", many: 100, more: 2000, list: true, pauseClient: 20 * time.Second},
	{name: "the server pauses", kind: "loop", many: 16, more: 2000, list: true, pauseServer: 12 * time.Second},
}

func TestClients(t *testing.T) {
	request, err := proto.Marshal(&filesystemv1.PathExistsRequest{Path: `C:\var\lib\kubelet`})
	require.NoError(t, err)
	for _, stack := range []struct{ name, interpreter, client string }{{"Node.js", *node, "client.js"}, {"Python", *python, "client.py"}} {
		for _, sc := range scenarios {
			t.Run(stack.name+": "+sc.name, func(t *testing.T) {
				need(t, *sim, stack.interpreter)
				if sc.kind == "loop" {
					t.Parallel() // it mostly waits
				}
				s := start(t)
				defer s.stop(t)
				call := []string{s.filesystem, filesystemv1.Filesystem_PathExists_FullMethodName, hex.EncodeToString(request)}
				if sc.list {
					call = []string{s.disk, diskv1.Disk_ListDiskIDs_FullMethodName, ""}
				}
				got := run(t, stack.interpreter, slices.Concat([]string{stack.client, sc.kind}, call, []string{fmt.Sprint(sc.many), fmt.Sprint(sc.more)}), func(client *os.Process) {
					pause(client, sc.pauseClient)
					pause(s.Process, sc.pauseServer)
				})
				switch sc.kind {
				case "calls":
					check(t, got["calls"], sc.many*sc.more, "OK")
				case "cancel":
					check(t, got["bursts"], sc.many*sc.more, "OK", "CANCELLED")
					check(t, got["after"], 100, "OK")
					check(t, got["watch"], 0) // still open
				case "loop":
					check(t, got["calls"], anyNumber, "OK")
				}
			})
		}
	}
}

// run runs a client, and a function when it says that it is ready. It returns how many calls of each phase have ended with
// each code.
func run(t *testing.T, interpreter string, arguments []string, ready func(client *os.Process)) (counts map[string]map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, arguments...)
	cmd.Stderr = t.Output()
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	require.NoError(t, errors.Join(errIn, errOut, cmd.Start()))
	var last string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last = lines.Text(); last == "ready" {
			ready(cmd.Process)
			_, _ = io.WriteString(in, "\n")
		}
	}
	require.NoError(t, cmd.Wait())
	t.Log(last)
	require.NoError(t, json.Unmarshal([]byte(last), &counts))
	return counts
}

func pause(p *os.Process, d time.Duration) {
	if d > 0 {
		_ = p.Signal(syscall.SIGSTOP)
		time.Sleep(d)
		_ = p.Signal(syscall.SIGCONT)
	}
}

// anyNumber is a number of calls that depends on time.
const anyNumber = -1

// check fails if there is another number of calls, or a code that is not allowed.
func check(t *testing.T, counts map[string]int, total int, allowed ...string) {
	t.Helper()
	sum := 0
	for code, n := range counts {
		if sum += n; !slices.Contains(allowed, code) {
			t.Errorf("%d calls ended with %s", n, code)
		}
	}
	if total != anyNumber && sum != total {
		t.Errorf("got %d calls, want %d", sum, total)
	}
}
