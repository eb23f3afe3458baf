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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/thismachine"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
)

// Exit codes. The help text and docs/testing.md list them.
const (
	exitFailed   = 1
	exitRefused  = 2 // a wrong command line, or no -yes
	exitFindings = 3 // the zip is complete, and has questions or cases that failed
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == thismachine.ServiceCommand {
		if err := thismachine.Serve(args[1:]); err != nil {
			fmt.Fprintln(stderr, "csi-proxy-verify:", err)
			return exitRefused
		}
		return 0
	}
	var o options
	switch err := o.parse(args, stdout); {
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
		switch {
		case errors.Is(err, errNoConsent):
			return exitRefused
		case errors.Is(err, errFindings):
			return exitFindings
		}
		return exitFailed
	}
	return 0
}

var (
	errNoConsent = errors.New("nothing was changed; to go on, add -yes")
	errFindings  = errors.New("questions or cases failed; the zip has them")
)

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
	defer context.AfterFunc(ctx, func() { say("Interrupted. This ends the question, cleans up, and keeps the answers; please wait.") })()
	m, err := thismachine.Open(ctx, o.machine, say)
	if err != nil {
		return err
	}
	defer func() {
		say("Cleaning up.")
		if closed := m.Close(context.WithoutCancel(ctx)); closed != nil {
			if errors.Is(err, errFindings) {
				err = nil // what is left is worse, and has another exit code
			}
			err = errors.Join(err, fmt.Errorf("%w; run: csi-proxy-verify -cleanup -dir %s", closed, o.machine.Dir))
		}
	}()
	path, name := o.out, "csi-proxy-verify-"+began.UTC().Format("20060102-150405")+".zip"
	if path == "" { // one that the operator has named is never removed
		path = filepath.Join(o.machine.Dir, name)
		if err := m.AnnounceZip(name); err != nil {
			return err
		}
	}
	// Before the run, which takes up to an hour: if the zip cannot be written, say so now.
	file, err := createZip(path)
	if err != nil {
		return err
	}
	written := false
	defer func() {
		if !written {
			file.Close()
			err = errors.Join(err, os.Remove(path))
		}
	}()
	doc, err := verify.Run(ctx, m.Site, verify.Options{
		Only: o.only, Suites: !o.questionsOnly, Program: version.String(), Began: began.UTC().Format(time.RFC3339),
		Progress: func(s verify.Step) {
			fmt.Fprintf(w, "%7s  %3d of %d  %-9s  %s", time.Since(began).Round(time.Second), s.Number, s.Most, s.Outcome, s.Name)
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
	if err := writeZip(file, doc, m.Recording); err != nil {
		_ = os.Truncate(path, 0) // on a full disk, makes room for the answers
		return errors.Join(err, rescue(o.machine.Dir, began, doc, m.Recording))
	}
	written = true
	if err := m.KeepZip(name); err != nil {
		return err
	}
	printSummary(w, doc)
	fmt.Fprintf(w, "Wrote %s. Read report.md in it, then send it to the project.\n", path)
	switch {
	case ctx.Err() != nil:
		return errors.New("the run was interrupted; the zip has the answers up to then")
	case doc.Count(answer.Failed) > 0 || doc.CountCases(trial.Failed) > 0:
		return errFindings
	}
	return nil
}
