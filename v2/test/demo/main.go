// Demo starts csi-proxy-sim, an emulated Windows node, takes volumes through their lives with the clients of version v1,
// and asks csi-proxyctl for what must be refused. It checks every answer and exits with code 1 at the first wrong one.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/serve/life"
)

// parts are what the demo shows: titles, the life of a volume each, and commands with their input. Answer and result
// contain want. Anybody who can create a pod can shape requests, so each is checked.
var parts = []struct {
	title, want string
	life        life.Life
	commands    []command
}{
	{"A volume on a disk, which grows meanwhile", "24.0 GiB", life.OnDisk(3), []command{
		{"disk partition 0", "", "PermissionDenied"},
		{`fs mkdir C:\Windows\System32\x`, "", "PermissionDenied"},
		{`fs mkdir C:\var\lib\kubelet\pods\..\..\x`, "", "InvalidArgument"},
	}},
	{"A volume on the disk of an iSCSI target", "2.0 GiB", life.OnTarget("10.0.0.10", target, "winsim", "winsim-secret-1"), []command{
		{"iscsi connect 10.0.0.10 " + target + " --auth chap --user winsim --secret-stdin", "wrong-secret-12", "PermissionDenied"},
	}},
	{"A volume on an SMB share", "a link", life.OnShare(`\\files\data`, "csi", "csi-Pa55"), []command{
		{`smb map \\files\data --user csi --password-stdin`, "wrong", "PermissionDenied"},
		{`smb map \\localhost\C$ --user csi --password-stdin`, "csi-Pa55", "PermissionDenied"},
	}},
	{"The node afterwards", "", life.Life{}, []command{{"node", "", "no problems"}}},
}

type command struct{ line, input, want string }

const target = "iqn.2025-01.com.example:guarded"

func main() {
	bin := flag.String("bin", "bin", "`directory` of csi-proxy-sim and csi-proxyctl")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := demonstrate(ctx, *bin); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// demonstrate starts the emulated node, shows all and always stops it again.
func demonstrate(ctx context.Context, bin string) error {
	fmt.Println("Starting csi-proxy-sim, an emulated Windows node.")
	start := time.Now()
	dir, err := os.MkdirTemp("", "csi-proxy-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	os.Setenv("CSI_PROXY_SOCKET_DIR", dir) // where both programs look
	simCtx, stopSim := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSim()
	var log bytes.Buffer
	sim := exec.CommandContext(simCtx, filepath.Join(bin, "csi-proxy-sim")) //nolint:gosec // the program that was built
	sim.Stderr = &log
	if runtime.GOOS != "windows" { // which cannot interrupt a single process, and kills it
		sim.Cancel = func() error { return sim.Process.Signal(os.Interrupt) }
	}
	sim.WaitDelay = 10 * time.Second // then kill it
	if err := sim.Start(); err != nil {
		return err
	}
	showErr := show(ctx, filepath.Join(bin, "csi-proxyctl"))
	stopSim()
	err = sim.Wait()
	if errors.Is(err, context.Canceled) || runtime.GOOS == "windows" {
		err = nil // we stopped it
	}
	if err := errors.Join(showErr, err); err != nil {
		return fmt.Errorf("%w\nLog of the emulated node:\n%s", err, log.String())
	}
	fmt.Printf("\nAll answers were correct, and the emulated node stopped cleanly. Total time: %v.\n", time.Since(start).Round(time.Millisecond))
	return nil
}

// show shows all parts, until an answer is wrong.
func show(ctx context.Context, ctl string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	clients, closeAll, err := life.Dial(ctx, "")
	defer closeAll()
	if err != nil {
		return err
	}
	for _, part := range parts {
		fmt.Printf("\n%s\n", part.title)
		var results strings.Builder
		for _, step := range slices.Concat(part.life.Begin, part.life.End) {
			began := time.Now()
			result, err := step.Do(ctx, clients)
			if err != nil {
				return fmt.Errorf("%s: %w", step.Name, err)
			}
			fmt.Printf("%-40s %-15s %9.1f ms\n", step.Name, result, float64(time.Since(began).Microseconds())/1000)
			fmt.Fprintln(&results, result)
		}
		if !strings.Contains(results.String(), part.want) {
			return fmt.Errorf("%s: no result is %q", part.title, part.want)
		}
		for _, c := range part.commands {
			if err := c.run(ctx, ctl); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs csi-proxyctl, and checks its answer.
func (c command) run(ctx context.Context, ctl string) error {
	fmt.Printf("\n$ csi-proxyctl %s\n", c.line)
	cmd := exec.CommandContext(ctx, ctl, strings.Fields(c.line)...) //nolint:gosec // one of parts
	cmd.Stdin = strings.NewReader(c.input)
	answer, err := cmd.CombinedOutput()
	fmt.Printf("%s", answer)
	if ctx.Err() != nil || !strings.Contains(strings.ReplaceAll(string(answer), "\r", ""), c.want) {
		return errors.Join(fmt.Errorf("%s: the answer has no %q", c.line, c.want), err, ctx.Err())
	}
	return nil
}
