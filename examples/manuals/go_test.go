package manuals_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/examples/manuals"
)

// TestGo compiles and vets every block of Go, for Linux and for Windows, and runs the tests
// among them.
func TestGo(t *testing.T) {
	blocks, err := manuals.ReadAll(repository(t), "go")
	must(t, err)
	if len(blocks) < 5 {
		t.Fatalf("only %d blocks of Go were found in the manuals", len(blocks))
	}
	m := newModule(t, blocks...)
	for _, goos := range []string{"linux", "windows"} {
		if output, err := m.run(goos, "vet", "./..."); err != nil {
			t.Errorf("GOOS=%s go vet: %v\n%s", goos, err, output)
		}
	}
	if output, err := m.run("", "test", "./..."); err != nil {
		t.Errorf("go test: %v\n%s", err, output)
	}
}

// TestGo_Wrong shows that mistakes are found, and where they are.
func TestGo_Wrong(t *testing.T) {
	file := filepath.Join(repository(t), "docs", "wrong.md")
	for want, code := range map[string]string{
		"docs/wrong.md:8":           "import \"fmt\"\n",
		"undefined: nothing":        "func f() { nothing() }\n",
		"cannot use 1":              "package main\n\nfunc main() { var s string = 1; _ = s }\n",
		"non-declaration statement": "if true { }\n",
		"fails as it should":        "import \"testing\"\n\nfunc TestF(t *testing.T) { t.Error(\"fails as it should\") }\n",
	} {
		output, err := newModule(t, manuals.Block{File: file, Line: 8, Code: code}).run("", "test", "./...")
		if err == nil || !strings.Contains(output, want) {
			t.Errorf("%q: got %v and %q, want %q", code, err, output, want)
		}
	}
}

// TestMountedFile runs the function in the manual that finds mounts with both versions of
// containerd, where a file of the node has the same path.
func TestMountedFile(t *testing.T) {
	blocks, err := manuals.Read(filepath.Join(repository(t), "docs", "library.md"))
	must(t, err)
	i := slices.IndexFunc(blocks, func(b manuals.Block) bool { return strings.Contains(b.Code, "func mountedFile(") })
	if i < 0 {
		t.Fatal("the manual has no function mountedFile any more")
	}
	m := newModule(t, blocks[i])
	m.write("block0/block_test.go", `package block

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMountedFile(t *testing.T) {
	root, node := t.TempDir(), filepath.Join(t.TempDir(), "token")
	mount := filepath.Join(root, node[len(filepath.VolumeName(node)):])
	if err := os.MkdirAll(filepath.Dir(mount), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ variable, file, want string }{
		{"", node, "at its path"},   // no HostProcess container
		{root, node, "at its path"}, // containerd 1.7
		{root, mount, "mounted"},    // containerd 1.6, with the node's own file at the path
	} {
		if err := os.WriteFile(step.file, []byte(step.want), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", step.variable)
		if got, err := mountedFile(node); err != nil || string(got) != step.want {
			t.Errorf("%+v: got %q, %v", step, got, err)
		}
	}
	if _, err := mountedFile(node + "-none"); !os.IsNotExist(err) {
		t.Errorf("a file that is nowhere: %v", err)
	}
}
`)
	if output, err := m.run("", "test", "./..."); err != nil {
		t.Errorf("go test: %v\n%s", err, output)
	}
}

// module is a Go module with a package for each block. It needs what the examples need.
type module struct {
	t   *testing.T
	dir string
}

func newModule(t *testing.T, blocks ...manuals.Block) module {
	t.Helper()
	m := module{t, t.TempDir()}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(repository(t), "examples", name))
		must(t, err)
		m.write(name, string(content))
	}
	const ours = "-replace=github.com/kubernetes-csi/csi-proxy/"
	args := []string{"mod", "edit", ours + "v2=" + repository(t)}
	for _, name := range []string{"client", "mounter", "v2/cmd"} {
		args = append(args, ours+name+"="+filepath.Join(repository(t), name))
	}
	output, err := m.run("", args...)
	if err != nil {
		t.Fatalf("go mod edit: %v\n%s", err, output)
	}
	for i, block := range blocks {
		clause := "package block; "
		if strings.HasPrefix(block.Code, "package ") || strings.Contains(block.Code, "\npackage ") {
			clause = ""
		}
		name := "block.go"
		if strings.Contains(block.Code, "testing.T)") {
			name = "block_test.go"
		}
		source := fmt.Sprintf("//line %s\n%s%s", block.Position(), clause, block.Code)
		m.write(filepath.Join(fmt.Sprintf("block%d", i), name), source)
	}
	return m
}

func (m module) write(name, content string) {
	m.t.Helper()
	path := filepath.Join(m.dir, name)
	must(m.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(m.t, os.WriteFile(path, []byte(content), 0o600))
}

// run runs the go command in the module, for a system or, without one, for this one.
func (m module) run(goos string, args ...string) (output string, err error) {
	cmd := exec.CommandContext(m.t.Context(), "go", args...)
	cmd.Dir = m.dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0", "GOWORK=off")
	both, err := cmd.CombinedOutput()
	return filepath.ToSlash(string(both)), err
}

// must ends the test if err is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
