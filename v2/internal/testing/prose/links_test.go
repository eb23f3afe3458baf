package prose

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

var (
	fence      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	inlineLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	definition = regexp.MustCompile(`(?m)^\[[^\]]+\]: (\S+)$`)
	title      = regexp.MustCompile(`(?m)^#+ (.+)$`)
	language   = regexp.MustCompile("(?m)^ *(?:```+|~~~+) *([^`\\s].*)$")
	dropped    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// loaded are the pages whose YAML their tests load: TestDocs of winsim, TestReadme_Scrape and TestReadme_Services of tools/manifests.
var loaded = map[string]bool{"docs/winsim.md": true, "deploy/charts/csi-proxy/README.md": true, "deploy/README.md": true}

// TestLinks follows the links of all Markdown files to files and sections of this repository. Code that no test compiles
// has no place in them.
func TestLinks(t *testing.T) {
	repository := os.DirFS(filepath.Join("..", "..", "..", ".."))
	pages := map[string]string{}
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(repository, name)
		for _, match := range language.FindAllStringSubmatch(string(text), -1) {
			if !slices.Contains([]string{"mermaid", "sh", "text"}, match[1]) && !(match[1] == "yaml" && loaded[name]) {
				t.Errorf("%s: no test reads its %s; make it an Example, or link to a file that is tested", name, match[1])
			}
		}
		pages[name] = fence.ReplaceAllString(string(text), "")
		return err
	})
	require.NoError(t, err)
	links := 0
	for name, text := range pages {
		text = inlineCode.ReplaceAllString(text, "")
		for _, match := range append(inlineLink.FindAllStringSubmatch(text, -1), definition.FindAllStringSubmatch(text, -1)...) {
			links++
			if problem := follow(repository, pages, name, match[1]); problem != "" {
				t.Errorf("%s: %s: %s", name, match[1], problem)
			}
		}
	}
	if links < 300 {
		t.Errorf("found only %d links", links)
	}
}

// follow returns what is wrong with a link of a page.
func follow(repository fs.FS, pages map[string]string, page, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "../../issues/") { // of GitHub
		return ""
	}
	file, section, hasSection := strings.Cut(target, "#")
	if file == "" {
		file = page
	} else {
		file = path.Join(path.Dir(page), file)
	}
	if _, err := fs.Stat(repository, file); err != nil {
		return "no such file"
	}
	if hasSection && !sections(pages[file])[section] {
		return "no such section"
	}
	return ""
}

// sections are the anchors of a page without its code, as GitHub makes them of its headings.
func sections(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, match := range title.FindAllStringSubmatch(text, -1) {
		anchor := dropped.ReplaceAllString(strings.ToLower(match[1]), "")
		anchors[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return anchors
}
