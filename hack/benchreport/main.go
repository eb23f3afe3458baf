// Benchreport writes the tables and plots of docs/performance.md from the output of benchmarks. It
// keeps the text around the tables, which is written by hand.
//
//	go run ./hack/benchreport -root . bin/bench/native.txt bin/bench/life.txt bin/bench/wine.txt
//
// If a file is missing, the page says that its part was left out.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", ".", "top `directory` of the repository")
	flag.Parse()
	if err := run(*root, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "benchreport: %v\n", err)
		os.Exit(1)
	}
}

func run(root string, files []string) error {
	var results []result
	for _, name := range files {
		output, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			fmt.Printf("%s does not exist; its part is left out.\n", name)
			continue
		case err != nil:
			return err
		}
		found, err := parse(string(output))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results = append(results, found...)
	}
	if len(results) == 0 {
		return errors.New("no benchmark results; run make bench")
	}
	calls, err := callTables(root)
	if err != nil {
		return err
	}
	system, err := systemCallTables(root)
	if err != nil {
		return err
	}
	page := filepath.Join(root, "docs", "performance.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := fill(string(text), sections(results, calls, system, machine()))
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	output := map[string]string{page: written}
	for name, plot := range plots(results) {
		output[filepath.Join(root, "docs", name)] = plot.svg()
	}
	for name, content := range output {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			return err
		}
		fmt.Println("Written:", name)
	}
	return nil
}
