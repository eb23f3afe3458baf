package main

import (
	"os"
	"runtime"
	"testing"
)

// socketDir makes a directory for sockets, whose name is short, unlike that of t.TempDir. Windows has pipes
// instead, with names that cannot be chosen.
func socketDir(t testing.TB) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		return ""
	}
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
