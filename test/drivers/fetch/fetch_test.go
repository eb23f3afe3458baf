package fetch

import (
	"archive/zip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// proxy makes a module proxy in a directory, and has the go command use it with a cache of its own.
func proxy(t *testing.T, modules map[Module]map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for m, files := range modules {
		versions := filepath.Join(dir, filepath.FromSlash(m.Path), "@v")
		require.NoError(t, os.MkdirAll(versions, 0o755))
		archive, err := os.Create(filepath.Join(versions, m.Version+".zip"))
		require.NoError(t, err)
		defer archive.Close()
		w := zip.NewWriter(archive)
		for name, content := range files {
			file, err := w.Create(m.String() + "/" + name)
			require.NoError(t, err)
			fmt.Fprint(file, content)
		}
		require.NoError(t, w.Close())
		for name, content := range map[string]string{
			m.Version + ".mod":  files["go.mod"],
			m.Version + ".info": fmt.Sprintf(`{"Version": %q}`, m.Version),
		} {
			require.NoError(t, os.WriteFile(filepath.Join(versions, name), []byte(content), 0o644))
		}
	}
	t.Setenv("GOPROXY", "file://"+dir)
	t.Setenv("GOSUMDB", "off")
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	t.Cleanup(func() {
		// The go command makes the directories of its cache read-only.
		_ = filepath.WalkDir(cache, func(name string, _ os.DirEntry, _ error) error {
			return os.Chmod(name, 0o755)
		})
	})
}

// TestBuild builds a program that "go install" refuses: its module replaces another one.
func TestBuild(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the address of the module proxy is a path of Unix")
	}
	driver := Module{Path: "driver.example/driver", Version: "v1.2.3"}
	proxy(t, map[Module]map[string]string{
		driver: {
			"go.mod":      "module driver.example/driver\n\ngo 1.21\n\nrequire driver.example/part v1.0.0\n\nreplace driver.example/part => driver.example/fork v1.1.0\n",
			"cmd/main.go": "package main\n\nimport \"driver.example/part\"\n\nvar version string\n\nfunc main() { println(version, part.Text) }\n",
		},
		{Path: "driver.example/fork", Version: "v1.1.0"}: {
			"go.mod":  "module driver.example/part\n\ngo 1.21\n",
			"part.go": "package part\n\nvar Text = \"text-of-the-fork\"\n",
		},
	})
	output := filepath.Join(t.TempDir(), "driver.exe")
	program := Program{Module: driver, Package: "./cmd", LinkerFlags: "-X main.version=linked-in-version"}
	require.NoError(t, program.Build(t.Context(), output))
	content, err := os.ReadFile(output)
	require.NoError(t, err)
	for _, want := range []string{"MZ", "linked-in-version", "text-of-the-fork"} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the program does not contain %q", want)
		}
	}
	// The second time nothing is asked for.
	t.Setenv("GOPROXY", "off")
	if err := program.Build(t.Context(), output); err != nil {
		t.Error(err)
	}

	missing := Program{Module: Module{Path: driver.Path, Version: "v9.9.9"}, Package: "./cmd"}
	err = missing.Build(t.Context(), filepath.Join(t.TempDir(), "driver.exe"))
	if err == nil || !strings.Contains(err.Error(), "driver.example/driver@v9.9.9") {
		t.Errorf("a version that the proxy does not have: %v", err)
	}
}
