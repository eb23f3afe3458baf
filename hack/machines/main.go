// Machines adds the answers of a machine to test/machines, and writes the pages that show them:
//
//	go run ./hack/machines field.zip
//
// The zip is what csi-proxy-verify writes. Run it in the root of the repository.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/printable"
	"github.com/kubernetes-csi/csi-proxy/v2/test/machines"
)

func main() {
	var o machines.Options
	flag.StringVar(&o.Name, "name", "", "`name` of the machine; by default its system and build")
	flag.BoolVar(&o.Replace, "replace", false, "replace a machine that is there; its notes stay")
	root := flag.String("root", ".", "root `directory` of the repository")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Add the answers of a machine to test/machines.\n\nUsage:\n  go run ./hack/machines [-name NAME] [-replace] FIELD.zip\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *root, flag.Arg(0), o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, printable.Text(err.Error())) // it can quote the zip
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, root, zipFile string, o machines.Options) error {
	dir := filepath.Join(root, machines.Directory)
	before, err := machines.Load(ctx, dir)
	if err != nil {
		return err
	}
	name, leftOut, err := machines.Add(ctx, dir, zipFile, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Added %s.\n", filepath.Join(machines.Directory, name))
	for _, text := range leftOut {
		fmt.Fprintf(w, "Left out: %s\n", printable.Text(text))
	}
	pages, err := machines.Pages(ctx, root, true)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Wrote: %s\n", strings.Join(pages, ", "))
	list, err := machines.Load(ctx, dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(before, func(m machines.Machine) bool { return m.Name == name }) {
		for _, d := range machines.New(before, list, name) {
			fmt.Fprintln(w, "New:", printable.Text(d.String())) // a note may have been about something else
		}
	}
	for _, problem := range machines.Check(list) {
		fmt.Fprintln(w, "To do:", printable.Text(problem)) // it quotes the zip
	}
	return nil
}
