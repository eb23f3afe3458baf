// Demo shows what CSI Proxy does for a driver, on any machine. It starts csi-proxy-sim, an
// emulated Windows node, and takes volumes through their life cycle with the clients that
// drivers use. It checks every answer and exits with code 1 at the first wrong one.
//
//	go run ./hack/demo -sim bin/csi-proxy-sim
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
	"runtime"
	"time"

	"google.golang.org/grpc/status"
)

func main() {
	sim := flag.String("sim", "bin/csi-proxy-sim", "path of the simulator's `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sim); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// run starts the simulator, takes the steps and always stops it again.
func run(ctx context.Context, program string) error {
	start := time.Now()
	dir, err := os.MkdirTemp("", "csi-proxy-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// The simulator creates its sockets here, and clients look for them here.
	if err := os.Setenv("CSI_PROXY_SOCKET_DIR", dir); err != nil {
		return err
	}

	simCtx, stopSim := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSim()
	var log bytes.Buffer
	sim := exec.CommandContext(simCtx, program)
	sim.Stderr = &log
	sim.Cancel = func() error {
		if runtime.GOOS == "windows" { // Windows cannot interrupt a single process
			return sim.Process.Kill()
		}
		return sim.Process.Signal(os.Interrupt)
	}
	sim.WaitDelay = 10 * time.Second // then kill it
	if err := sim.Start(); err != nil {
		return err
	}
	fmt.Printf("Started %s, an emulated Windows node, as process %d.\n\n", program, sim.Process.Pid)

	ctx, giveUp := context.WithTimeout(ctx, 30*time.Second)
	defer giveUp()
	ended := make(chan error, 1)
	go func() {
		err := sim.Wait()
		if err != nil {
			err = fmt.Errorf("the simulator exited: %w", err)
		}
		ended <- err
		giveUp() // no server is left to answer
	}()
	stepsErr := takeSteps(ctx)
	stopSim()
	simErr := <-ended
	if errors.Is(simErr, context.Canceled) || runtime.GOOS == "windows" {
		simErr = nil // we stopped it
	}
	if err := errors.Join(stepsErr, simErr); err != nil {
		return fmt.Errorf("%w\nLog of the simulator:\n%s", err, log.String())
	}
	fmt.Printf("\nAll answers were correct, and the simulator stopped cleanly. Total time: %v.\n",
		time.Since(start).Round(time.Millisecond))
	return nil
}

// takeSteps connects to the node and takes the steps in order, until an answer is wrong.
func takeSteps(ctx context.Context) error {
	const line = "%11s  %-10s  %-47s  %s\n"
	fmt.Printf(line, "time", "API", "call (paths relative to "+kubelet+")", "answer")
	start := time.Now()
	clients, err := connect(ctx)
	if err != nil {
		return err
	}
	defer clients.close()
	fmt.Printf(line, since(start), "", "connect", "done")

	for _, life := range []struct {
		title string
		steps []step
	}{
		{"A volume on a disk", clients.diskSteps(ctx)},
		{"A volume on the disk of an iSCSI target", clients.iscsiSteps(ctx)},
		{"A volume on an SMB share", clients.smbSteps(ctx)},
	} {
		fmt.Printf("\n%25s%s\n", "", life.title)
		for _, step := range life.steps {
			if err := step.take(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// take runs a step, prints it as a line and checks the answer.
func (s step) take(line string) error {
	start := time.Now()
	answer, err := s.do()
	if err != nil {
		answer = status.Code(err).String()
	}
	fmt.Printf(line, since(start), s.api, s.call, answer)
	if err != nil {
		fmt.Printf("%25s%s\n", "", status.Convert(err).Message())
	}
	if answer != s.want {
		return fmt.Errorf("%s %s: got %s, want %s", s.api, s.call, answer, s.want)
	}
	return nil
}

// since is the time since start, in milliseconds.
func since(start time.Time) string {
	return fmt.Sprintf("%.2f ms", time.Since(start).Seconds()*1e3)
}
