package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim/replay"
)

// Exit codes of replay, as those of diff.
const (
	exitSame    = 0
	exitDiffers = 1
	exitTrouble = 2 // a wrong command line, or not a recording
)

const replayUsage = `csi-proxy-sim replay makes the calls of a recording on an emulated node and shows where the node answers differently.

Usage: csi-proxy-sim replay [flags] FILE

The file is what -record-calls of csi-proxy or csi-proxy-sim has written; it may be compressed with gzip. The exit code
is 0 without differences, 1 with differences, and 2 if the recording cannot be replayed or no call can be compared.

Flags:
`

// runReplay is the command replay.
func runReplay(args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("replay", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	format := set.String("o", "text", "output `format`: text or json")
	var show details
	set.BoolVar(&show.skipped, "skipped", false, "also show the calls that could not be compared")
	set.BoolVar(&show.outside, "outside", false, "also show what other programs did to files, as far as the calls tell")
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, replayUsage)
		set.SetOutput(stdout)
		set.PrintDefaults()
		return exitSame
	case err == nil && set.NArg() != 1:
		err = fmt.Errorf("%d files are given; pass one recording", set.NArg())
	case err == nil && *format != "text" && *format != "json":
		err = fmt.Errorf("-o: %q is neither text nor json", *format)
	}
	if err != nil {
		fmt.Fprintf(stderr, "csi-proxy-sim replay: %v\nRun 'csi-proxy-sim replay -help' for the flags.\n", err)
		return exitTrouble
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	report, err := replay.CompareFile(ctx, set.Arg(0))
	if err != nil {
		fmt.Fprintf(stderr, "csi-proxy-sim: %s\n", printable.Text(err.Error()))
		return exitTrouble
	}
	if *format == "json" {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		err = encoder.Encode(report)
	} else {
		err = printReport(stdout, report, show)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "csi-proxy-sim: %v\n", err)
		return exitTrouble
	case len(report.Differences) > 0:
		return exitDiffers
	case report.Calls == 0:
		return exitTrouble
	default:
		return exitSame
	}
}

// details are what is printed only on request.
type details struct{ skipped, outside bool }

func printReport(w io.Writer, r *replay.Report, show details) error {
	p := printer{w: w}
	on := ""
	if r.Windows != "" {
		on = ", Windows " + r.Windows
	}
	p.printf("Recorded by csi-proxy %s%s. Compared %d calls, skipped %d. Decoded %d answers of drivers.\n", r.Program, on, r.Calls, len(r.Skipped), r.Raw)
	for _, note := range r.Notes {
		p.printf("Note: %s.\n", note)
	}
	if show.skipped {
		for _, s := range r.Skipped {
			p.printf("Skipped call %d, %s: %s.\n", s.Call, s.Method, s.Reason)
		}
	}
	switch {
	case show.outside:
		for _, c := range r.Outside {
			p.printf("Outside: %s.\n", c.String())
		}
	case len(r.Outside) > 0:
		p.printf("Other programs changed files meanwhile: %d changes; -outside shows them.\n", len(r.Outside))
	}
	last := uint64(0)
	for _, d := range r.Differences {
		if d.Call != last {
			p.printf("\nCall %d, %s %s\n", d.Call, d.Method, d.Arguments)
			last = d.Call
		}
		field := ""
		if d.Field != "" {
			field = " of " + d.Field
		}
		p.printf("  %s%s\n    recorded: %s\n    emulated: %s\n", d.Kind, field, d.Recorded, d.Emulated)
	}
	switch {
	case len(r.Differences) > 0:
		p.printf("\n%d differences.\n", len(r.Differences))
	case r.Calls > 0:
		p.printf("No differences.\n")
	}
	return p.err
}

// printer keeps the first error. Recordings come from other machines, so it escapes what they contain.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = printable.Text(text)
		}
	}
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
