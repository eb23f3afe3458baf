//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/attack"
)

// attackRole is an argument that makes the test binary an attacker. The number of the attack follows, and the file
// that ends it.
const attackRole = "-play-attack"

// An attack lasts this long, and longer if so many new clients have not been served yet.
const (
	attackTime = 10 * time.Second
	newClients = 3
)

func playAttack(number, end string) {
	n, err := strconv.Atoi(number)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for _, err := os.Stat(end); err != nil; _, err = os.Stat(end) {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	path := client.PipePath("filesystem", apiversion.NewVersionOrPanic("v1"))
	fmt.Println(attack.Attacks[n].Run(ctx, func(ctx context.Context) (net.Conn, error) { return winio.DialPipeContext(ctx, path) })) //nolint:forbidigo // for the test that has started it
}

// hit is what an attack did.
type hit struct {
	count        string
	before, most int           // memory in KiB
	calls        int           // of others
	waited       time.Duration // the longest that a new client did
	errors       []error
}

// attacked lets an attack loose on the daemon. Meanwhile other clients make calls: one that was there
// before, and new ones. The attack goes on until all have their answers, or have waited too long.
func attacked(t *testing.T, number int) (h hit) {
	t.Helper()
	executable, err := os.Executable()
	require.NoError(t, err)
	daemon := start(t)
	defer daemon.kill()
	c := connect(t)
	require.NoError(t, ask(t.Context(), c))
	h.before = daemon.resident()
	end := filepath.Join(t.TempDir(), "end")
	attacker := launch(t, executable, attackRole, strconv.Itoa(number), end)
	began := time.Now()
	for served := 0; attacker.isRunning() && (time.Since(began) < attackTime || served < newClients && len(h.errors) == 0); h.calls++ {
		if h.calls%50 == 0 {
			h.most = max(h.most, daemon.resident())
			asked := time.Now()
			if err := askNew(t.Context()); err != nil {
				h.errors = append(h.errors, fmt.Errorf("a new client: %w", err))
			} else {
				served++
			}
			h.waited = max(h.waited, time.Since(asked))
		}
		if err := ask(t.Context(), c); err != nil {
			h.errors = append(h.errors, fmt.Errorf("another client: %w", err))
		}
	}
	if !attacker.isRunning() {
		t.Fatalf("the attacker has ended by itself:\n%s", attacker.output())
	}
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	_, output := attacker.exit()
	h.count = strings.TrimSpace(output)
	h.most = max(h.most, daemon.resident())
	return h
}

// askNew makes a call on a connection of its own, which it has to get while the attack goes on.
func askNew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	c, err := fsv1.New(ctx, client.WithWait())
	if err != nil {
		return err
	}
	defer c.Close()
	return ask(ctx, c, patiently)
}

// TestAttack: the attacks that took gigabytes or every place on a pipe. Other clients are served, old and
// new ones, and the daemon stays small.
func TestAttack(t *testing.T) {
	for i, a := range attack.Attacks[:3] {
		t.Run(a.Name, func(t *testing.T) {
			h := attacked(t, i)
			figure(t, "%s: %s times; %d calls of others; a new client waited %d ms at most; memory %d, then %d MB",
				a.Name, h.count, h.calls, h.waited.Milliseconds(), h.before>>10, h.most>>10)
			for _, err := range h.errors {
				t.Error(err)
			}
			if h.most > 200<<10 {
				t.Errorf("the daemon has %d MB", h.most>>10)
			}
		})
	}
}
