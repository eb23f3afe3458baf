package utils_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/utils"
)

// The published signatures.
var (
	_ func(string, ...string) ([]byte, error)  = utils.RunPowershellCmd
	_ func(string) string                      = utils.EnsureLongPath
	_ func(string) (bool, error)               = utils.IsPathValid
	_ func(string) (bool, error)               = utils.IsMountedFolder
	_ func(string) (bool, error)               = utils.IsPathSymlink
	_ func(link, target string, d bool) error  = utils.CreateSymlink
	_ func(string) (bool, error)               = utils.PathExists
	_ [utils.MaxPathLengthWindows - 260]string = [0]string{}
)

func TestEnsureLongPath(t *testing.T) {
	for path, want := range map[string]string{`C:\x`: `\\?\C:\x`, `\\?\C:\x`: `\\?\C:\x`, "": utils.LongPathPrefix} {
		if got := utils.EnsureLongPath(path); got != want {
			t.Errorf("EnsureLongPath(%s) is %s, want %s", path, got, want)
		}
	}
}

func TestPathExists(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]bool{dir: true, filepath.Join(dir, "x"): false} {
		if got, err := utils.PathExists(path); got != want || err != nil {
			t.Errorf("PathExists(%s) is %t, %v", path, got, err)
		}
	}
	if got, err := utils.PathExists(dir + "\x00"); got || err == nil {
		t.Errorf("a path that cannot be one exists: %t, %v", got, err)
	}
}

func TestIsPathSymlink(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skip("no links here:", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Skip("os.Symlink made no link:", err) // Wine
	}
	for path, want := range map[string]bool{dir: false, link: true} {
		if got, err := utils.IsPathSymlink(path); got != want || err != nil {
			t.Errorf("IsPathSymlink(%s) is %t, %v", path, got, err)
		}
	}
	if _, err := utils.IsPathSymlink(filepath.Join(dir, "x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing path: %v", err)
	}
}

// TestRunPowershellCmd runs a script of ours in place of PowerShell, which prints what it gets.
func TestRunPowershellCmd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a shell script stands for PowerShell")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nfor argument; do echo \"<$argument>\"; done\necho \"path is $path\" >&2\nexit 3\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "powershell"), []byte(script), 0o700))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	const value = `C:\x; Remove-Item y`
	out, err := utils.RunPowershellCmd(`Get-Item $Env:path`, "path="+value)
	if err == nil || err.Error() != "exit status 3" {
		t.Errorf("error %v, want that of the script", err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if last := lines[len(lines)-1]; last != "path is "+value {
		t.Errorf("the variable is %q", last)
	}
	for _, line := range lines[:len(lines)-1] {
		if strings.Contains(line, value) {
			t.Errorf("the value is in the argument %s", line)
		}
	}
	if want := "<$global:ProgressPreference = 'SilentlyContinue'; Get-Item $Env:path>"; lines[len(lines)-2] != want {
		t.Errorf("the script is %s, want %s", lines[len(lines)-2], want)
	}
}
