package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Directory is where machines are, below the root of the repository.
const Directory = "test/machines"

// Pages compares the table in docs/testing.md and the page docs/answers.md with the machines of a
// repository. With write it writes them. outdated names the pages that were not up to date.
func Pages(ctx context.Context, root string, write bool) (outdated []string, err error) {
	list, err := Load(ctx, filepath.Join(root, Directory))
	if err != nil {
		return nil, err
	}
	testing := filepath.Join(root, "docs", "testing.md")
	content, err := os.ReadFile(testing)
	if err != nil {
		return nil, err
	}
	const begin, end = "<!-- machines -->\n", "<!-- end of machines -->\n"
	before, rest, found := strings.Cut(string(content), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return nil, fmt.Errorf("%s has no %s...%s", testing, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	for _, page := range []struct{ path, text string }{
		{testing, before + begin + Table(list) + end + after},
		{filepath.Join(root, "docs", "answers.md"), Page(list)},
	} {
		old, err := os.ReadFile(page.path)
		if err == nil && string(old) == page.text {
			continue
		}
		outdated = append(outdated, page.path)
		if write {
			if err := os.WriteFile(page.path, []byte(page.text), 0o644); err != nil {
				return outdated, err
			}
		}
	}
	return outdated, nil
}
