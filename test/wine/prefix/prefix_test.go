//go:build linux && wine

package prefix_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/test/wine/prefix"
)

func TestMain(m *testing.M) {
	prefix.CloseOnSignal()
	m.Run()
}

func TestPrefix(t *testing.T) {
	wine := prefix.Need(t)
	p, err := wine.New(t.Context())
	require.NoError(t, err)
	defer p.Close()

	if output, err := p.Run(t.Context(), "cmd", "/c", "echo hello"); err != nil || strings.TrimSpace(output) != "hello" {
		t.Errorf("echo: %q, %v", output, err)
	}
	_, err = p.Run(t.Context(), "cmd", "/c", "exit 3")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("exit 3: %v", err)
	}
	if output, err := p.Run(t.Context(), "cmd", "/c", `dir Z:\`); err == nil {
		t.Errorf("there is a drive Z:\n%s", output)
	}

	shared := t.TempDir()
	require.NoError(t, p.Map('S', shared))
	if _, err := p.Run(t.Context(), "cmd", "/c", `echo x>S:\file`); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(shared, "file")); err != nil {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), "cmd", "/c", `echo x>C:\file`); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(p.Path(`C:\file`)); err != nil {
		t.Error(err)
	}

	if links, err := p.StoresLinks(t.Context()); err != nil {
		t.Errorf("links: %v, %v", links, err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if links, err := p.StoresLinks(ended); err == nil {
		t.Errorf("links: %v, although nothing could be asked", links)
	}

	require.NoError(t, p.Close())
	if _, err := os.Stat(p.Path(`C:\`)); err == nil {
		t.Error("the prefix is still there")
	}
	if _, err := os.Stat(filepath.Join(shared, "file")); err != nil {
		t.Error("the directory shown as a drive was emptied")
	}
}
