package manuals_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/examples/manuals"
)

// repository returns the directory of this checkout.
func repository(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	must(t, err)
	return dir
}

func TestReadAll(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, lines ...string) {
		t.Helper()
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	write("a.md", "Text", "```go", "one", "two", "```", "    not a block", "```text", "not asked for", "```", "```not a block```")
	write("docs/b.md", "- item", "  ```yaml", "  key: value", "  ```", "```go", "```")
	write("docs/tilde.md", "~~~ go", "```", "~~~", "````yaml", "```go", "````")
	write("c.txt", "```go", "no manual", "```")
	write(".cache/d.md", "```go", "not ours", "```")
	write("bin/e.md", "```go", "not ours", "```")

	got, err := manuals.ReadAll(dir, "go", "yaml")
	must(t, err)
	want := []manuals.Block{
		{File: filepath.Join(dir, "a.md"), Line: 3, Language: "go", Code: "one\ntwo\n"},
		{File: filepath.Join(dir, "docs", "b.md"), Line: 3, Language: "yaml", Code: "  key: value\n"},
		{File: filepath.Join(dir, "docs", "b.md"), Line: 6, Language: "go"},
		{File: filepath.Join(dir, "docs", "tilde.md"), Line: 2, Language: "go", Code: "```\n"},
		{File: filepath.Join(dir, "docs", "tilde.md"), Line: 5, Language: "yaml", Code: "```go\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	for _, lines := range [][]string{
		{"```go", "no end"},
		{"```go", "no end", "~~~"},
		{"````go", "no end", "```"},
		{"```", "no language", "```"},
		{"```golang", "```"},
		{"```YAML", "```"},
		{`~~~yaml title="x"`, "~~~"},
		{"```go {linenos}", "```"},
	} {
		write("wrong.md", lines...)
		if _, err := manuals.ReadAll(dir); err == nil || !strings.Contains(err.Error(), "wrong.md:2") {
			t.Errorf("%q: got %v, want an error with its place", lines, err)
		}
	}
}
