// Command csi-proxyctl shows and manages the storage of a Windows node through CSI Proxy.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
)

//go:generate go run ./docs ../../../docs/cli

func main() {
	os.Exit(run())
}

func run() int {
	ctx := untilInterrupt()
	terminal, restore := openTerminal(os.Stdout.Fd())
	defer restore()
	errTerminal, restoreErr := openTerminal(os.Stderr.Fd()) // another console if standard output is a file
	defer restoreErr()
	host, _ := os.Hostname() // only a name
	env := command.Environment{
		Host: host,
		In:   os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv:   os.Getenv,
		Terminal: terminal,
		Services: scm.Connect,
		// Questions and progress go to standard error.
		CanAsk:      term.IsTerminal(int(os.Stdin.Fd())),
		ErrTerminal: errTerminal,
		After:       time.After,
	}
	if env.Terminal {
		env.Width = func() int { return terminalWidth(os.Stdout) }
	}
	if env.ErrTerminal {
		env.ErrWidth = func() int { return terminalWidth(os.Stderr) }
	}
	if env.CanAsk {
		env.ReadSecret = func(prompt string) (string, error) { return readSecret(ctx, prompt) }
	}
	return command.Run(ctx, os.Args[1:], env)
}

// terminalWidth is not cached, because windows can be resized.
func terminalWidth(terminal *os.File) int {
	width, _, err := term.GetSize(int(terminal.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// untilInterrupt returns a context that ends with the first interrupt. Commands may then clean
// up. A second interrupt ends the process at once.
func untilInterrupt() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(command.ExitInterrupted)
	}()
	return ctx
}

// readSecret prompts on the terminal without echo. It restores the echo after an interrupt.
func readSecret(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, prompt)
	defer fmt.Fprintln(os.Stderr)
	type answer struct {
		secret []byte
		err    error
	}
	read := make(chan answer, 1)
	go func() {
		secret, err := term.ReadPassword(fd)
		read <- answer{secret, err}
	}()
	select {
	case a := <-read:
		return string(a.secret), a.err
	case <-ctx.Done():
		if err := term.Restore(fd, state); err != nil {
			return "", fmt.Errorf("restore the terminal's echo: %w", err)
		}
		return "", ctx.Err()
	}
}
