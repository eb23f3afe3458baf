package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/command"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// TestPages_AreThoseOfDocs fails after a change without 'make generate'.
func TestPages_AreThoseOfDocs(t *testing.T) {
	const dir = "../../../../docs/cli"
	written := pages(command.Root())
	for name, want := range written {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if string(got) != want {
			t.Errorf("docs/cli/%s is out of date: run 'make generate'", name)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != len(written) {
		t.Errorf("there are %d files in docs/cli, want %d (%v)", len(files), len(written), err)
	}
}

func TestWrite_RemovesOldPages(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "gone.md")
	require.NoError(t, os.WriteFile(old, nil, 0o600))
	require.NoError(t, write(dir, command.Root()))
	if _, err := os.Stat(old); err == nil {
		t.Error("the page of a command that is gone is still there")
	}
}
