// Command csi-proxyctl shows and drives the storage of a Windows node through CSI Proxy.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/scm"
)

//go:generate go run ./docs ../../docs/cli

func main() {
	os.Exit(run())
}

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)() // a second interrupt ends the process at once
	env := command.Environment{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv:   os.Getenv,
		Terminal: term.IsTerminal(int(os.Stdout.Fd())),
		Services: scm.Connect,
		After:    time.After,
	}
	if term.IsTerminal(int(os.Stdin.Fd())) {
		env.ReadSecret = func(prompt string) (string, error) { return readSecret(ctx, prompt) }
	}
	return command.Run(ctx, os.Args[1:], env)
}

// readSecret asks on the terminal without an echo. An interrupt must not leave the terminal
// mute, so its state is put back.
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
		return "", errors.Join(ctx.Err(), term.Restore(fd, state))
	}
}
