// Demo shows what CSI Proxy does for a driver, on any machine: it starts csi-proxy-sim,
// an emulated Windows node, and takes volumes through their whole life with the clients that
// drivers use. It checks every answer and exits with 1 at the first wrong
// one.
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
	sim := flag.String("sim", "bin/csi-proxy-sim", "`file` of the simulator")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sim); err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		os.Exit(1)
	}
}

// run starts the simulator, takes the steps and, whatever they brought, stops it again.
func run(ctx context.Context, program string) error {
	start := time.Now()
	dir, err := os.MkdirTemp("", "csi-proxy-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// Here the simulator creates its sockets, and clients look for them.
	if err := os.Setenv("CSI_PROXY_SOCKET_DIR", dir); err != nil {
		return err
	}

	simCtx, stopSim := context.WithCancel(context.WithoutCancel(ctx))
	defer stopSim()
	var log bytes.Buffer
	sim := exec.CommandContext(simCtx, program)
	sim.Stderr = &log
	sim.Cancel = func() error {
		if runtime.GOOS == "windows" { // which cannot interrupt one process
			return sim.Process.Kill()
		}
		return sim.Process.Signal(os.Interrupt)
	}
	sim.WaitDelay = 10 * time.Second // then it is killed
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
			err = fmt.Errorf("the simulator ended: %w", err)
		}
		ended <- err
		giveUp() // nobody is left to answer
	}()
	stepsErr := takeSteps(ctx)
	stopSim()
	simErr := <-ended
	if errors.Is(simErr, context.Canceled) || runtime.GOOS == "windows" {
		simErr = nil // it ended because we said so, with exit code 0 if it was interrupted
	}
	if err := errors.Join(stepsErr, simErr); err != nil {
		return fmt.Errorf("%w\nThe simulator's log:\n%s", err, log.String())
	}
	fmt.Printf("\nEvery answer was right, and the simulator stopped cleanly: %v in all.\n",
		time.Since(start).Round(time.Millisecond))
	return nil
}

// takeSteps connects to the node and takes one step after the other, until an answer is
// not the one it should be.
func takeSteps(ctx context.Context) error {
	const line = "%11s  %-10s  %-47s  %s\n"
	fmt.Printf(line, "time", "API", "call, with paths in "+kubelet, "answer")
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

// take takes a step, prints it as a line and compares the answer with the one that it should
// get.
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
		return fmt.Errorf("%s of %s: the answer is %s, not %s", s.call, s.api, answer, s.want)
	}
	return nil
}

// since is the time since start, always in the same unit.
func since(start time.Time) string {
	return fmt.Sprintf("%.2f ms", time.Since(start).Seconds()*1e3)
}
