//go:build windows && wine

package daemon

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
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

// playSwapper exchanges until it is killed, and writes how often. Each step is repeated until it succeeds: the
// daemon may be in the directory, or may have made what is in the way.
func playSwapper(kind string) {
	steps := []func() error{
		func() error { return replace(swapDir, swapDir+".aside") },
		func() error { return replace(swapDir+".trap", swapDir) },
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
		}
		fmt.Fprintln(os.Stdout, n)
	}
}

// replace renames, and moves away what has the new name. It removes nothing: in Wine a directory and a link can have
// the same name for a moment, and then what is moved away is the link to the outside.
func replace(from, to string) error {
	if err := os.Rename(from, to); err == nil {
		return nil
	}
	_ = os.Rename(to, fmt.Sprintf("%s.surplus-%d", to, time.Now().UnixNano())) // if there is one
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
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{outside + `\sub\deep`, swapDir + `\sub\deep`, turnDir, kubelet + `\source`} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{outside + `\sub\file`, outside + `\file`} {
		if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeLink(swapDir+".trap", junction(outside)); err != nil {
		t.Fatal(err)
	}
	before := treeOf(outside)
	for kind, dir := range map[string]string{"swap": swapDir, "turn": turnDir} {
		t.Run(kind, func(t *testing.T) {
			swapper := launch(t, executable, swapRole, kind)
			const enough, enoughCalls = 100, 200
			calls := attackedCalls(api, dir)
			var mu sync.Mutex
			succeeded, failed := map[string]int{}, map[string]int{}
			ctx, cancel := context.WithTimeout(t.Context(), timeLimit)
			defer cancel()
			var made atomic.Int32
			var callers sync.WaitGroup
			for name, call := range calls {
				callers.Go(func() {
					for (swapper.exchanges() < enough || made.Load() < enoughCalls) && swapper.isRunning() && ctx.Err() == nil {
						err := call(ctx)
						made.Add(1)
						mu.Lock()
						if err == nil {
							succeeded[name]++
						} else {
							failed[name]++
						}
						mu.Unlock()
					}
				})
			}
			callers.Wait()
			swapper.kill()
			if done := swapper.exchanges(); done < enough {
				t.Errorf("only %d exchanges: %s", done, swapper.output())
			}
			t.Logf("calls that succeeded: %v, that failed: %v", succeeded, failed)
			if got := treeOf(outside); got != before {
				t.Errorf("outside there is\n%s\nand there was\n%s", got, before)
			}
			if len(succeeded) == 0 || len(failed) == 0 {
				t.Error("the calls did not meet the attacker")
			}
		})
	}
}

// attackedCalls are calls below a directory that an attacker exchanges.
func attackedCalls(api files, dir string) map[string]func(context.Context) error {
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
			_, err := api.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: dir})
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
	}
}
