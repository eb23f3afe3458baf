//go:build windows && wine

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/hosttest"
)

// swapRole is an argument that makes the test binary an attacker, which exchanges a directory for a junction.
const swapRole = "-play-swapper"

// What the swapper exchanges: the directory swapDir for a junction to the outside, and it turns turnDir into one
// in place.
const (
	outside = `C:\outside`
	swapDir = kubelet + `\swap\dir`
	turnDir = kubelet + `\swap\turn`
)

// longestPause is between two steps. Some calls are to meet a change on their way, and some the directory or the
// junction as they stand.
const longestPause = 40 * time.Millisecond

// playSwapper exchanges until it is killed, and writes how often. Each step is repeated until it succeeds: the
// daemon may be in the directory, or may have made what is in the way.
func playSwapper(kind string) {
	steps := []func() error{
		func() error { return replace(swapDir, swapDir+".aside") },
		func() error { return errors.Join(setTrap(), replace(swapDir+".trap", swapDir)) },
		func() error { return replace(swapDir, swapDir+".trap") },
		func() error { return replace(swapDir+".aside", swapDir) },
	}
	if kind == "turn" {
		steps = []func() error{
			func() error {
				clearDirectory(turnDir)
				return turnInto(turnDir, junction(outside))
			},
			func() error { return turnBack(turnDir) },
		}
	}
	for n := 1; ; n++ {
		for _, step := range steps {
			for step() != nil {
				time.Sleep(time.Millisecond) // or the daemon would never get to the directory
			}
			time.Sleep(rand.N(longestPause))
		}
		fmt.Fprintln(os.Stdout, n)
	}
}

// setTrap makes the junction again if a directory that the daemon has made was moved in its place.
func setTrap() error {
	const trap = swapDir + ".trap"
	if info, err := os.Lstat(trap); err == nil && info.Mode().Type() != os.ModeDir {
		return nil
	}
	_ = moveAway(trap) // if there is one
	return makeLink(trap, junction(outside))
}

// moveAway frees a name.
func moveAway(path string) error {
	return os.Rename(path, fmt.Sprintf("%s.surplus-%d", path, time.Now().UnixNano()))
}

// replace renames, and moves away what has the new name. It removes nothing: in Wine a directory and a link can have
// the same name for a moment, and then what is moved away is the link to the outside.
func replace(from, to string) error {
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	_ = moveAway(to) // if there is one
	return os.Rename(from, to)
}

// clearDirectory removes what is in a directory, unless that is a link.
func clearDirectory(dir string) {
	if info, err := os.Lstat(dir); err != nil || info.Mode().Type() != os.ModeDir {
		return
	}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		_ = os.RemoveAll(dir + `\` + entry.Name())
	}
}

// exchanges is how often a swapper has done its work.
func (p *process) exchanges() int {
	lines := strings.Fields(p.output())
	if len(lines) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(lines[len(lines)-1])
	return n
}

// TestSwaps: while another process exchanges a directory for a junction that leads out of the working
// directory, calls below it never reach what is outside.
func TestSwaps(t *testing.T) {
	if reason := whyNoLinks(); reason != "" {
		t.Skip(reason)
	}
	start(t)
	api := newFiles(t, "v2alpha1")
	executable, err := os.Executable()
	require.NoError(t, err)
	for _, dir := range []string{outside + `\sub\deep`, swapDir + `\sub\deep`, turnDir, kubelet + `\source`} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for _, file := range []string{outside + `\sub\file`, outside + `\file`} {
		require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	}
	before := treeOf(outside)
	for kind, dir := range map[string]string{"swap": swapDir, "turn": turnDir} {
		t.Run(kind, func(t *testing.T) {
			swapper := launch(t, executable, swapRole, kind)
			calls := attackedCalls(t, api, dir)
			results := met{}
			for name := range calls {
				results[name] = &tally{}
			}
			ctx, cancel := context.WithTimeout(t.Context(), swapLimit)
			defer cancel()
			var callers sync.WaitGroup
			for name, call := range calls {
				callers.Go(func() {
					for (swapper.exchanges() < enoughExchanges || !results.enough()) && swapper.isRunning() && ctx.Err() == nil {
						results[name].count(call(ctx))
					}
				})
			}
			callers.Wait()
			swapper.kill()
			done := swapper.exchanges()
			figure(t, "%s: %d exchanges; %s", kind, done, results)
			if done < enoughExchanges {
				t.Errorf("only %d exchanges: %s", done, swapper.output())
			}
			if got := treeOf(outside); got != before {
				t.Errorf("outside there is\n%s\nand there was\n%s", got, before)
			}
			if !results.enough() {
				t.Errorf("some calls did not meet the attacker, or met nothing else: %s", results)
			}
		})
	}
}

// An attack goes on until there were so many exchanges, and of each method so many calls that succeeded and that met
// the junction. The limit is for machines with other things to do.
const (
	enoughExchanges = 100
	enoughCalls     = 5
	swapLimit       = 2 * time.Minute
)

// tally counts the calls of a method. Those that fail otherwise met a directory that another call or the attacker
// had just taken away.
type tally struct{ succeeded, refused, failed atomic.Int32 }

func (c *tally) count(err error) {
	switch {
	case err == nil:
		c.succeeded.Add(1)
	case errors.Is(err, fs.ErrPermission):
		c.refused.Add(1)
	default:
		c.failed.Add(1)
	}
}

// met is what the calls of each method met.
type met map[string]*tally

func (m met) enough() bool {
	for _, c := range m {
		if c.succeeded.Load() < enoughCalls || c.refused.Load() < enoughCalls {
			return false
		}
	}
	return true
}

func (m met) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		c := m[name]
		parts = append(parts, fmt.Sprintf("%s: %d done, %d refused, %d failed", name, c.succeeded.Load(), c.refused.Load(), c.failed.Load()))
	}
	return strings.Join(parts, "; ")
}

// attackedCalls are calls below a directory that an attacker exchanges.
func attackedCalls(t *testing.T, api files, dir string) map[string]func(context.Context) error {
	t.Helper()
	return map[string]func(context.Context) error{
		"Mkdir": func(ctx context.Context) error {
			_, err := api.Mkdir(ctx, &filesystem.MkdirRequest{Path: dir + `\sub\new`})
			return err
		},
		"Rmdir": func(ctx context.Context) error {
			_, err := api.Rmdir(ctx, &filesystem.RmdirRequest{Path: dir + `\sub`, Force: true})
			return err
		},
		"RmdirContents": func(ctx context.Context) error {
			_, err := api.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: dir + `\sub`})
			return err
		},
		"RmdirContents of it": func(ctx context.Context) error {
			_, err := api.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: dir})
			if errors.Is(err, hosttest.ErrConflict) { // it is a link itself, for which there is another code
				return fs.ErrPermission
			}
			return err
		},
		"CreateSymlink": func(ctx context.Context) error {
			_, err := api.CreateSymlink(ctx, &filesystem.CreateSymlinkRequest{SourcePath: kubelet + `\source`, TargetPath: dir + `\link`})
			return err
		},
		"IsSymlink": func(ctx context.Context) error {
			_, err := api.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: dir + `\sub`})
			return err
		},
		"PathExists": func(ctx context.Context) error {
			// Only outside there is such a file.
			answer, err := api.PathExists(ctx, &filesystem.PathExistsRequest{Path: dir + `\file`})
			if err == nil && answer.Exists {
				t.Error("PathExists reports a file outside")
			}
			return err
		},
	}
}
