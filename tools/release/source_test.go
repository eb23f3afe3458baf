package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// newRepository returns a directory with one commit, and a function that runs git there.
func newRepository(t *testing.T) (dir string, run func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	run = func(args ...string) {
		t.Helper()
		identity := []string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}
		if out, err := exec.CommandContext(t.Context(), "git", append(identity, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	run("init", "-q")
	writeFile(t, filepath.Join(dir, "main.go"), []byte("package main\n"))
	run("add", ".")
	run("commit", "-q", "-m", "first")
	return dir, run
}

func TestCheckSource(t *testing.T) {
	dir, run := newRepository(t)
	expect := func(when, message string) {
		t.Helper()
		err := checkSource(t.Context(), dir, "v9.8.7")
		if message == "" && err != nil || message != "" && (err == nil || !strings.Contains(err.Error(), message) || !strings.Contains(err.Error(), "UNRELEASED=1")) {
			t.Errorf("%s: %v, want an error with %q and the way out", when, err, message)
		}
	}
	expect("no tag", "has no tag v9.8.7")
	run("tag", "v9.8.70")
	expect("another tag", `has no tag v9.8.7, only ["v9.8.70"]`)
	run("tag", "-a", "v9.8.7", "-m", "v9.8.7")
	expect("the tag", "")

	added := filepath.Join(dir, "added.go")
	writeFile(t, added, []byte("package main\n"))
	expect("a file that git does not know", `"added.go"`)
	if err := os.Remove(added); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "main.go"), []byte("package other\n"))
	expect("a changed file", `"main.go"`)

	run("commit", "-q", "-a", "-m", "second")
	expect("a commit after the tag", "has no tag")
	dir = t.TempDir()
	expect("no repository", "not a git repository")
}
