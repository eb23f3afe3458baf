package architecture

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var update = flag.Bool("update", false, "write the tables of docs/architecture.md")

const (
	root = "../../.."
	page = root + "/docs/architecture.md"
)

// TestPage compares the tables of the page with what the tests here enforce.
func TestPage(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	text := string(content)
	for name, table := range map[string]string{"rooms": printRooms(), "rules": printRules(), "limits": printLimits(t)} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(text, begin)
		old, after, ended := strings.Cut(rest, end)
		switch {
		case !found || !ended:
			t.Errorf("%s has no %s...%s", page, strings.TrimSpace(begin), strings.TrimSpace(end))
		case old != table && !*update:
			t.Errorf("the table of %s in %s is out of date; run: go test ./internal/testing/architecture -run TestPage -update", name, page)
		default:
			text = before + begin + table + end + after
		}
	}
	if *update && !t.Failed() {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
	}
}

func printRooms() string {
	b := &strings.Builder{}
	fmt.Fprint(b, "| Room | Holds |\n|---|---|\n")
	for _, r := range rooms {
		fmt.Fprintf(b, "| %s | %s |\n", patterns(r.packages), r.holds)
	}
	return b.String()
}

func printRules() string {
	b := &strings.Builder{}
	fmt.Fprint(b, "| Packages | Must not import | Why |\n|---|---|---|\n")
	for _, r := range rules {
		how := map[reach]string{direct: "", transitive: "; not even indirectly", transitiveOnLinux: "; on Linux not even indirectly"}[r.reach]
		fmt.Fprintf(b, "| %s | %s%s | %s |\n", patterns(r.packages), patterns(r.forbidden), how, r.why)
	}
	return b.String()
}

// patterns shows a list of patterns to people.
func patterns(list string) string {
	var in, out []string
	for pattern := range strings.FieldsSeq(list) {
		name, excepted := strings.CutPrefix(pattern, "!")
		switch {
		case name == "v2/...":
			name = "the library and the programs"
		case strings.HasPrefix(name, "v2/cmd/"): // a module of its own, in this directory
			name = "`" + name + "`"
		default:
			name = "`" + strings.TrimPrefix(name, "v2/") + "`"
		}
		if excepted {
			out = append(out, name)
		} else {
			in = append(in, name)
		}
	}
	text := strings.Join(in, ", ")
	if len(out) > 0 {
		text += " except " + strings.Join(out, ", ")
	}
	return text
}

// TestTree compares the tree that the page shows with the directories that hold packages. An
// entry that ends in /... stands for everything below it.
func TestTree(t *testing.T) {
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(content), "## The tree\n\n```text\n")
	tree, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("the page shows no tree")
	}
	shown := map[string]bool{} // whether there is anything there
	for line := range strings.Lines(tree) {
		name, _, _ := strings.Cut(line, " ")
		if name = strings.TrimSpace(name); name != "" {
			shown[name] = false
		}
	}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && (base == "testdata" || base == "bin" || base == "dist" || (strings.HasPrefix(base, ".") && name != root)) {
			return filepath.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		directory, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		directory = filepath.ToSlash(directory)
		if _, ok := shown[directory]; ok {
			shown[directory] = true
			return nil
		}
		for above := directory; above != "."; above = filepath.ToSlash(filepath.Dir(above)) {
			if _, ok := shown[above+"/..."]; ok {
				shown[above+"/..."] = true
				return nil
			}
		}
		t.Errorf("the tree does not show %s", directory)
		shown[directory] = true // once is enough
		return nil
	})
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		if !shown[name] {
			t.Errorf("the tree shows %s, where there is no Go code", name)
		}
	}
}
