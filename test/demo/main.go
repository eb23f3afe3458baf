// Demo starts csi-proxy-sim, an emulated Windows node, and takes volumes through their life with csi-proxyctl. It
// checks every answer and exits with code 1 at the first wrong one.
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
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client"
	disk "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
)

// steps are titles, and commands with their input and a part of the answer. The kubelet retries calls, so some run
// twice: repeating finished work succeeds. Anybody who can create a pod can shape requests, so each is checked.
var steps = []struct{ command, input, want string }{
	{"# A volume on a disk", "", ""},
	{"volume life --disk 3 --yes", "", "24.0 GiB"}, // the node grows the disk meanwhile
	{"disk partition 0", "", "PermissionDenied"},
	{`fs mkdir C:\Windows\System32\x`, "", "PermissionDenied"},
	{`fs mkdir C:\var\lib\kubelet\pods\..\..\x`, "", "InvalidArgument"},
	{"# A volume on the disk of an iSCSI target", "", ""},
	{"iscsi portal add 10.0.0.10", "", "added"},
	{"iscsi portal discover 10.0.0.10", "", ":guarded"},
	{"iscsi connect 10.0.0.10 iqn.2025-01.com.example:guarded --auth chap --user winsim --secret-stdin", "wrong-secret-12", "PermissionDenied"},
	{"iscsi connect 10.0.0.10 iqn.2025-01.com.example:guarded --auth chap --user winsim --secret-stdin", "winsim-secret-1", "connected"},
	{"iscsi disks 10.0.0.10 iqn.2025-01.com.example:guarded", "", "4\n5"},
	{"volume life --disk 4 --yes", "", "2.0 GiB"},
	{"iscsi disconnect 10.0.0.10 iqn.2025-01.com.example:guarded", "", "disconnected"},
	{"# A volume on an SMB share", "", ""},
	{`smb map \\files\data --user csi --password-stdin --link C:\var\lib\kubelet\plugins\share`, "wrong", "PermissionDenied"},
	{`smb map \\files\data --user csi --password-stdin --link C:\var\lib\kubelet\plugins\share`, "csi-Pa55", "mapped"},
	{`smb map \\files\data --user csi --password-stdin --link C:\var\lib\kubelet\plugins\share`, "csi-Pa55", "was mapped already"},
	{`fs is-link C:\var\lib\kubelet\plugins\share`, "", "true"},
	{`smb map \\localhost\C$ --user csi --password-stdin`, "csi-Pa55", "PermissionDenied"},
	{`fs rmdir C:\var\lib\kubelet\plugins\share`, "", "removed"},
	{`smb unmap \\files\data`, "", "unmapped"},
	{"# The node afterwards", "", ""},
	{"node", "", "no problems"},
}

func main() {
	bin := flag.String("bin", "bin", "`directory` of csi-proxy-sim and csi-proxyctl")
	flag.Parse()
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
	if err := run(ctx, *bin); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// run starts the emulated node, takes the steps and always stops it again.
func run(ctx context.Context, bin string) error {
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
	stepsErr := takeSteps(ctx, filepath.Join(bin, "csi-proxyctl"))
	stopSim()
	err = sim.Wait()
	if errors.Is(err, context.Canceled) || runtime.GOOS == "windows" {
		err = nil // we stopped it
	}
	if err := errors.Join(stepsErr, err); err != nil {
		return fmt.Errorf("%w\nLog of the emulated node:\n%s", err, log.String())
	}
	fmt.Printf("\nAll answers were correct, and the emulated node stopped cleanly. Total time: %v.\n", time.Since(start).Round(time.Millisecond))
	return nil
}

// takeSteps runs the commands in order, until an answer is wrong.
func takeSteps(ctx context.Context, ctl string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := disk.New(ctx, client.WithWait()); err != nil {
		return err
	}
	for _, step := range steps {
		if title, ok := strings.CutPrefix(step.command, "# "); ok {
			fmt.Printf("\n%s\n", title)
			continue
		}
		fmt.Printf("\n$ csi-proxyctl %s\n", step.command)
		command := exec.CommandContext(ctx, ctl, strings.Fields(step.command)...) //nolint:gosec // one of steps
		command.Stdin = strings.NewReader(step.input)
		answer, err := command.CombinedOutput()
		fmt.Printf("%s", answer)
		if ctx.Err() != nil || !strings.Contains(strings.ReplaceAll(string(answer), "\r", ""), step.want) {
			return errors.Join(fmt.Errorf("%s: the answer has no %q", step.command, step.want), err, ctx.Err())
		}
	}
	return nil
}
