// Package fetch gets released Go modules from the module proxy, and builds their programs for
// Windows. The go command verifies the checksums of what it downloads.
package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is a released version of a Go module.
type Module struct{ Path, Version string }

func (m Module) String() string { return m.Path + "@" + m.Version }

// Copy downloads the module and copies its files to a new directory, where they can be changed. A
// directory that exists already is complete and stays as it is.
//
// "go install module@version" refuses modules whose go.mod has replace directives, as that of most
// drivers has. They count in a directory of its own.
func (m Module) Copy(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	from, err := m.download(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o750); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "incomplete-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary)
	if err := os.CopyFS(temporary, os.DirFS(from)); err != nil { // which makes the files writable
		return fmt.Errorf("copy %s: %w", m, err)
	}
	return os.Rename(temporary, dir)
}

// download returns the directory of the module in the module cache, which is read-only.
func (m Module) download(ctx context.Context) (string, error) {
	// Not in the directory of another module, whose replace directives would count.
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.String()) //nolint:gosec // the module that the caller asks for
	cmd.Dir = os.TempDir()
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	var found struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(output, &found); jsonErr != nil {
		return "", fmt.Errorf("go mod download %s: %w\n%s", m, errors.Join(err, jsonErr), stderr.String())
	}
	if found.Error != "" || found.Dir == "" {
		return "", fmt.Errorf("go mod download %s: %s", m, found.Error)
	}
	return found.Dir, nil
}

// Program is the main package of a program, and what its own Makefile gives to the linker.
type Program struct {
	Module
	Package     string // such as ./cmd/driver
	LinkerFlags string // such as -X main.version=v1
}

// Build builds the program for Windows, unless output exists already. The sources are beside it.
func (p Program) Build(ctx context.Context, output string) error {
	if _, err := os.Stat(output); err == nil {
		return nil
	}
	sources := filepath.Join(filepath.Dir(output), "src", strings.ReplaceAll(p.String(), "/", "_"))
	if err := p.Copy(ctx, sources); err != nil {
		return err
	}
	// One package at a time: a driver has a thousand, and other work may go on.
	cmd := exec.CommandContext(ctx, "go", "build", "-p=1", "-o", output, "-ldflags=-s -w "+p.LinkerFlags, p.Package) //nolint:gosec // see download
	cmd.Dir = sources
	// Archives of modules have no vendor directory. If the go.mod that was released lacks a line,
	// -mod=mod adds it to the copy.
	cmd.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off",
		"GOFLAGS=-mod=mod -trimpath -buildvcs=false")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s of %s: %w\n%s", p.Package, p.Module, err, text)
	}
	return nil
}
