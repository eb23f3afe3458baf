//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client"
	filesystemv1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// callers make calls without a pause.
type callers struct {
	sync.WaitGroup
	answered atomic.Int64
	news     chan struct{} // has a value after an answer
	stop     context.CancelFunc
	mu       sync.Mutex
	errors   map[codes.Code]int
}

// call lets n callers use a client, until ended, or until a call fails if so wanted.
func call(ctx context.Context, c *fsv1.Client, n int, untilFailure bool) *callers {
	cs := &callers{errors: map[codes.Code]int{}, news: make(chan struct{}, 1)}
	ctx, cs.stop = context.WithCancel(ctx)
	for range n {
		cs.Go(func() {
			for ctx.Err() == nil {
				err := ask(ctx, c)
				if ctx.Err() != nil {
					return
				}
				if err == nil {
					cs.answered.Add(1)
					select {
					case cs.news <- struct{}{}:
					default:
					}
					continue
				}
				cs.mu.Lock()
				cs.errors[status.Code(err)]++
				cs.mu.Unlock()
				if untilFailure {
					return
				}
			}
		})
	}
	return cs
}

// wantOnly checks how calls have failed, after their end.
func (cs *callers) wantOnly(t *testing.T, code codes.Code) {
	t.Helper()
	if cs.errors[code] == 0 || len(cs.errors) != 1 {
		t.Errorf("calls have failed with %v, want %v and nothing else", cs.errors, code)
	}
}

// await waits until that many calls more were answered.
func (cs *callers) await(n int64) {
	for n += cs.answered.Load(); cs.answered.Load() < n; {
		<-cs.news
	}
}

// TestLoad_ServerKilled: clients notice it, and find the next daemon by themselves.
func TestLoad_ServerKilled(t *testing.T) {
	first := start(t)
	cs := call(t.Context(), connect(t), 16, false)
	cs.await(100)
	first.kill()
	killed := time.Now()
	start(t)
	cs.await(100)
	figure(t, "from the kill of the daemon, with a new one, to the 100th answer for an old client: %d ms", time.Since(killed).Milliseconds())
	cs.stop()
	cs.Wait()
	cs.wantOnly(t, codes.Unavailable)
}

// victimRole is an argument that makes the test binary a client, which is killed.
const victimRole = "-play-victim"

const victimConnections = 16

// playVictim makes calls for ever. When some were answered on every connection, it makes a
// file.
func playVictim(file string) {
	ctx := context.Background()
	var connections []*callers
	for range victimConnections {
		c, err := fsv1.New(ctx, client.WithWait())
		if err != nil {
			panic(err)
		}
		connections = append(connections, call(ctx, c, 2, false))
	}
	for _, cs := range connections {
		cs.await(10)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		panic(err)
	}
	connections[0].Wait()
}

// TestLoad_ClientKilled: the daemon does not care, and gives back what the client had.
func TestLoad_ClientKilled(t *testing.T) {
	daemon, c := start(t), connect(t)
	executable, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, ask(t.Context(), c, patiently))
	_, before := daemon.handles()
	const victims = 5
	for i := range victims {
		file := filepath.Join(t.TempDir(), "called")
		victim := launch(t, executable, victimRole, file)
		eventually(t, "a client makes calls", func() bool {
			_, err := os.Stat(file)
			return err == nil
		})
		victim.kill()
		if err := ask(t.Context(), c); err != nil {
			t.Errorf("after client %d was killed: %v", i, err)
		}
	}
	eventually(t, "the pipes of killed clients are closed", func() bool {
		_, now := daemon.handles()
		return now <= before+victims
	})
}

// TestLoad_GracefulStop: whatever is in flight when the service stops is answered, or refused
// that the daemon is gone.
func TestLoad_GracefulStop(t *testing.T) {
	s, log := installDaemon(t)
	process := s.start()
	wantAllServing(t)
	c := connect(t)
	tree := kubelet + `\tree`
	for i := range 1000 {
		dir := fmt.Sprintf(`%s\%d`, tree, i%10)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(fmt.Sprintf(`%s\%d`, dir, i), nil, 0o600))
	}
	cs := call(t.Context(), c, 16, true)
	cs.await(100)
	removed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
		defer cancel()
		_, err := connect(t).Rmdir(ctx, &filesystemv1.RmdirRequest{Path: tree, Force: true})
		removed <- err
	}()
	eventually(t, "files are removed", func() bool {
		files, _ := filepath.Glob(tree + `\*\*`)
		return len(files) < 1000
	})
	s.stop()
	require.NoError(t, <-removed, "a call in flight:")
	if _, err := os.Stat(tree); !os.IsNotExist(err) {
		t.Errorf("it was answered, and has not done its work: %v", err)
	}
	cs.Wait()
	cs.wantOnly(t, codes.Unavailable)
	s.wantStopped(process)
	if text, err := os.ReadFile(log); err != nil || strings.Contains(string(text), "did not finish in time") {
		t.Errorf("calls had to be cut off: %v\n%s", err, text)
	}
}
