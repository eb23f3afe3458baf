//go:build windows && wine && counted

// Package systemcalls counts the system calls of operations. It is built with copies of the packages
// below the seam that count what they call: test/wine/suite makes them.
package systemcalls

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/calltable"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

var update = flag.Bool("update", false, "write the table")

// mark closes a handle that does not exist. A trace of Wine's server shows that, and so where each
// operation begins and ends.
func mark(number int) { _ = windows.CloseHandle(windows.Handle(0x7f000000 + number)) }

// TestQuestions: where a drive letter is a link, as on Windows, questions take one system call below the
// root of the drive, which is lent. When that time is over, the root is opened again: one answer of many
// is then dearer.
func TestQuestions(t *testing.T) {
	work := `C:\asked`
	if err := os.MkdirAll(work+`\directory`, 0o700); err != nil {
		t.Fatal(err)
	}
	files, err := filesystem.New(fsapi.New(), filesystem.WorkingDirs(work))
	if err != nil {
		t.Fatal(err)
	}
	directory, nothing := work+`\directory`, work+`\directory\nothing`
	for name, ask := range map[string]func() error{
		"PathExists": func() error {
			_, err := files.PathExists(t.Context(), &filesystem.PathExistsRequest{Path: directory})
			return err
		},
		"PathExists of nothing": func() error {
			_, err := files.PathExists(t.Context(), &filesystem.PathExistsRequest{Path: nothing})
			return err
		},
		"PathValid": func() error {
			_, err := files.PathValid(t.Context(), &filesystem.PathValidRequest{Path: directory})
			return err
		},
		"IsSymlink of a directory": func() error {
			_, err := files.IsSymlink(t.Context(), &filesystem.IsSymlinkRequest{Path: directory})
			return err
		},
		"Mkdir of what exists": func() error {
			_, err := files.Mkdir(t.Context(), &filesystem.MkdirRequest{Path: directory})
			return err
		},
		"Rmdir of nothing": func() error {
			_, err := files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: nothing})
			return err
		},
	} {
		const times = 10
		cheap := 0
		var calls map[string]int
		for range times {
			winapi.TakeCalls()
			if err := ask(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if calls = winapi.TakeCalls(); len(calls) == 1 && calls["NtQueryAttributesFile"] == 1 {
				cheap++
			}
		}
		if cheap < times/2 {
			t.Errorf("%s: %d of %d took one system call; the last took %v", name, cheap, times, calls)
		}
	}
}

// TestSystemCalls compares the system calls of each operation with the table.
func TestSystemCalls(t *testing.T) {
	work := `C:\counted`
	require.NoError(t, os.MkdirAll(work, 0o700))
	files, err := filesystem.New(fsapi.New(), filesystem.WorkingDirs(work))
	require.NoError(t, err)
	machine, err := system.New(systemapi.New())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context()) // one that can end, like that of a request
	defer cancel()
	path := func(name string) string { return filepath.Join(work, name) }
	make3 := func(name string) error {
		return errors.Join(os.MkdirAll(path(name+`\inner`), 0o700), os.WriteFile(path(name+`\file`), nil, 0o600))
	}
	pathExists := func(name string) error {
		_, err := files.PathExists(ctx, &filesystem.PathExistsRequest{Path: path(name)})
		return err
	}
	mkdir := func(name string) error {
		_, err := files.Mkdir(ctx, &filesystem.MkdirRequest{Path: path(name)})
		return err
	}
	rmdir := func(name string, force bool) error {
		_, err := files.Rmdir(ctx, &filesystem.RmdirRequest{Path: path(name), Force: force})
		return err
	}
	if err := errors.Join(make3("directory"), pathExists("directory")); err != nil { // and what is only asked once
		t.Fatal(err)
	}
	var rows []calltable.Row
	for i, operation := range []struct {
		name    string
		prepare func() error
		do      func() error
	}{
		{"PathExists", nil, func() error { return pathExists(`directory\inner`) }},
		{"PathExists of nothing", nil, func() error { return pathExists(`directory\nothing`) }},
		{"PathValid", nil, func() error {
			_, err := files.PathValid(ctx, &filesystem.PathValidRequest{Path: path("directory")})
			return err
		}},
		{"IsSymlink of a directory", nil, func() error {
			_, err := files.IsSymlink(ctx, &filesystem.IsSymlinkRequest{Path: path("directory")})
			return err
		}},
		{"GetPathStats", nil, func() error {
			_, err := files.GetPathStats(ctx, &filesystem.GetPathStatsRequest{Path: path("directory")})
			return err
		}},
		{"Mkdir of what exists", nil, func() error { return mkdir("directory") }},
		{"Mkdir with a parent", nil, func() error { return mkdir("made") }},
		{"Mkdir with two missing parents", nil, func() error { return mkdir(`a\b\c`) }},
		{"Rmdir of nothing", nil, func() error { return rmdir("nothing", false) }},
		{"Rmdir of an empty directory", nil, func() error { return rmdir("made", false) }},
		{"Rmdir of an empty directory with force", nil, func() error { return rmdir(`a\b\c`, true) }},
		{"Rmdir with force of a directory with two entries", func() error { return make3("tree") }, func() error { return rmdir("tree", true) }},
		{"RmdirContents of two entries", func() error { return make3("contents") }, func() error {
			_, err := files.RmdirContents(ctx, &filesystem.RmdirContentsRequest{Path: path("contents")})
			return err
		}},
		{"GetBIOSSerialNumber", nil, func() error {
			_, err := machine.GetBIOSSerialNumber(ctx, &system.GetBIOSSerialNumberRequest{})
			return err
		}},
	} {
		if operation.prepare != nil {
			require.NoError(t, operation.prepare())
		}
		winapi.TakeCalls()
		mark(2 * i)
		err := operation.do()
		mark(2*i + 1)
		if err != nil {
			t.Errorf("%s: %v", operation.name, err)
		}
		rows = append(rows, calltable.Row{Operation: operation.name, Calls: winapi.TakeCalls()})
	}
	calltable.Compare(t, rows, *update)
}
