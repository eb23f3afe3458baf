// Demo starts csi-proxy-sim, an emulated Windows node, and takes volumes through their lives with csi-proxyctl. It checks
// every answer and exits with code 1 at the first wrong one.
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

	"github.com/kubernetes-csi/csi-proxy/client"
	"github.com/kubernetes-csi/csi-proxy/client/apiversion"
)

// parts are what the demo shows: titles, and commands with their input. Each answer contains want. VOLUME is the volume
// that the last list has named. Anybody who can create a pod can shape requests, so what must be refused is tried, too.
var parts = []struct {
	title    string
	commands []command
}{
	{"A volume on a disk, which grows meanwhile", slices.Concat([]command{
		{"disk list", "", "WINSIM0003"},
		{"disk online 3", "", "online"},
		{"disk partition 3", "", "partitioned"},
		{"volume list --disk 3 -o name", "", ""},
	}, volume, []command{
		{"disk rescan", "", "rescanned"},
		{"volume resize VOLUME max", "", "resized"},
		{"volume stats VOLUME", "", "of 24.0 GiB"},
	}, unstage, []command{
		{"disk offline 3 --yes", "", "offline"},
		{"disk partition 0", "", "PermissionDenied"},
		{`fs mkdir C:\Windows\System32\x`, "", "PermissionDenied"},
		{`fs mkdir C:\var\lib\kubelet\pods\..\..\x`, "", "InvalidArgument"},
	})},
	{"A volume on the disk of an iSCSI target", slices.Concat([]command{
		{"iscsi portal add 10.0.0.10", "", "added"},
		{"iscsi portal discover 10.0.0.10", "", target},
		{connect, "wrong-secret-12", "PermissionDenied"},
		{connect, "winsim-secret-1", "connected"},
		{"iscsi disks 10.0.0.10 " + target, "", "4"},
		{"disk online 4", "", "online"},
		{"disk partition 4", "", "partitioned"},
		{"volume list --disk 4 -o name", "", ""},
	}, volume, unstage, []command{
		{"iscsi disconnect 10.0.0.10 " + target, "", "disconnected"},
	})},
	{"A volume on an SMB share", slices.Concat([]command{
		{`smb map \\files\data --user csi --password-stdin --link ` + staged, "csi-Pa55", "mapped"},
	}, publish, unpublish, []command{
		{"fs rmdir " + staged, "", "removed"},
		{`smb unmap \\files\data`, "", "unmapped"},
		{`smb map \\files\data --user csi --password-stdin`, "wrong", "PermissionDenied"},
		{`smb map \\localhost\C$ --user csi --password-stdin`, "csi-Pa55", "PermissionDenied"},
	})},
	{"The node afterwards", []command{{"node", "", "no problems"}}},
}

const (
	staged  = `C:\var\lib\kubelet\plugins\life`
	pod     = `C:\var\lib\kubelet\pods\life`
	connect = "iscsi connect 10.0.0.10 " + target + " --auth chap --user winsim --secret-stdin"
)

// What every volume goes through.
var (
	volume = slices.Concat([]command{
		{"volume format VOLUME --yes", "", "formatted"},
		{"volume mount VOLUME " + staged, "", "mounted"},
		{"volume of-path " + staged, "", "VOLUME"},
	}, publish, []command{
		{"volume flush VOLUME", "", "flushed"},
		{"volume format VOLUME --yes", "", "formatted"}, // keeps it
	})
	publish = []command{
		{"fs mkdir " + pod, "", "created"},
		{"fs link " + staged + " " + pod + `\volume`, "", "linked"},
		{"fs is-link " + pod + `\volume`, "", "true"},
	}
	unpublish = []command{
		{"fs rmdir --yes " + pod + `\volume`, "", "removed"},
		{"fs rmdir --yes " + pod, "", "removed"},
	}
	unstage = slices.Concat(unpublish, []command{
		{"volume unmount VOLUME " + staged, "", "unmounted"},
		{"fs rmdir " + staged, "", "removed"},
	})
)

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
	conn, err := client.Connect(ctx, "disk", apiversion.NewVersionOrPanic("v1"), client.WithWait())
	if err != nil {
		return err
	}
	_ = conn.Close() // the node serves
	for _, part := range parts {
		fmt.Printf("\n%s\n", part.title)
		volume := ""
		for _, c := range part.commands {
			answer, err := c.run(ctx, ctl, volume)
			if err != nil {
				return err
			}
			if strings.HasSuffix(c.line, "-o name") {
				volume = strings.TrimSpace(answer)
			}
		}
	}
	return nil
}

// run runs csi-proxyctl, and checks its answer.
func (c command) run(ctx context.Context, ctl, volume string) (string, error) {
	named := strings.NewReplacer("VOLUME", volume)
	c.line, c.want = named.Replace(c.line), named.Replace(c.want)
	fmt.Printf("\n$ csi-proxyctl %s\n", c.line)
	cmd := exec.CommandContext(ctx, ctl, strings.Fields(c.line)...) //nolint:gosec // one of parts
	cmd.Stdin = strings.NewReader(c.input)
	answer, err := cmd.CombinedOutput()
	fmt.Printf("%s", answer)
	if ctx.Err() != nil || !strings.Contains(strings.ReplaceAll(string(answer), "\r", ""), c.want) {
		return "", errors.Join(fmt.Errorf("%s: the answer has no %q", c.line, c.want), err, ctx.Err())
	}
	return string(answer), nil
}
