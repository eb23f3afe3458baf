// Command csi-proxy-verify asks a Windows machine what only Windows can tell. It makes virtual disks of
// its own, asks the open questions of docs/testing.md, runs the conformance suite, and writes the
// answers to a zip. It removes everything that it has made.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/thismachine"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// Exit codes.
const (
	exitFailed  = 1
	exitRefused = 2 // a wrong command line, or no -yes
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	switch err := o.parse(args, stderr); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, "csi-proxy-verify:", err)
		return exitRefused
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, stdout); err != nil {
		fmt.Fprintln(stderr, "csi-proxy-verify:", err)
		if errors.Is(err, errNoConsent) {
			return exitRefused
		}
		return exitFailed
	}
	return 0
}

var errNoConsent = errors.New("nothing was changed; to go on, add -yes")

func (o *options) run(ctx context.Context, w io.Writer) error {
	say := func(text string) { fmt.Fprintln(w, text) }
	switch {
	case o.version:
		fmt.Fprintln(w, "csi-proxy-verify", version.Full())
		return nil
	case o.list:
		return o.printList(w)
	case o.cleanup:
		if err := thismachine.Clean(ctx, o.machine.Dir, say); err != nil {
			return err
		}
		say("Nothing is left in " + o.machine.Dir + ".")
		return nil
	}
	if err := thismachine.Check(o.machine); err != nil {
		return err
	}
	o.printPlan(w)
	if !o.yes {
		return errNoConsent
	}
	return o.verify(ctx, w, say)
}

// verify runs everything and writes the zip. The zip is written and everything is removed even after
// an interrupt.
func (o *options) verify(ctx context.Context, w io.Writer, say func(string)) (err error) {
	began := time.Now()
	m, err := thismachine.Open(ctx, o.machine, say)
	if err != nil {
		return err
	}
	defer func() {
		say("Cleaning up.")
		if closed := m.Close(context.WithoutCancel(ctx)); closed != nil {
			err = errors.Join(err, fmt.Errorf("%w; run: csi-proxy-verify -cleanup -dir %s", closed, o.machine.Dir))
		}
	}()
	steps := 0
	doc, err := verify.Run(ctx, m.Site, verify.Options{
		Only: o.only, Suites: !o.questionsOnly, Program: version.String(), Began: began.UTC().Format(time.RFC3339),
		Progress: func(s verify.Step) {
			steps++
			fmt.Fprintf(w, "%7s  %3d  %-9s  %s", time.Since(began).Round(time.Second), steps, s.Outcome, s.Name)
			if s.Detail != "" {
				fmt.Fprintf(w, ": %s", s.Detail)
			}
			fmt.Fprintln(w)
		},
	})
	if err != nil {
		return err
	}
	if err := m.Keep(); err != nil {
		say("The recording is incomplete: " + err.Error())
	}
	path := o.out
	if path == "" {
		path = filepath.Join(o.machine.Dir, fmt.Sprintf("csi-proxy-verify-%s-%s.zip", doc.Machine.Build, began.UTC().Format("20060102-150405")))
	}
	if err := writeZip(path, doc, m.Recording); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d questions answered, %d failed, %d not asked. %d cases passed, %d failed, %d skipped.\n",
		doc.Count("answered"), doc.Count("failed"), doc.Count("not asked"),
		doc.CountCases("passed"), doc.CountCases("failed"), doc.CountCases("skipped"))
	fmt.Fprintf(w, "Wrote %s. Read report.md in it, then send it to the project.\n", path)
	if ctx.Err() != nil {
		return errors.New("the run was interrupted; the zip has the answers up to then")
	}
	return nil
}
