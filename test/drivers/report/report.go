// Package report writes the tables of docs/drivers.md. It keeps the text around them, which people
// write.
package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var update = flag.Bool("update", false, "write the results to docs/drivers.md")

// block is a part of the page that a test replaces.
var block = regexp.MustCompile(`(?s)<!-- results: ([a-z0-9-]+) -->\n.*?<!-- end -->`)

// Write puts a section into its block of docs/drivers.md. Root is the top directory of the repository.
// Without the flag -update Write does nothing.
func Write(root, name, section string) error {
	if !*update {
		return nil
	}
	page := pagePath(root)
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	written, err := fill(string(text), name, section)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(written), 0o644)
}

func pagePath(root string) string { return filepath.Join(root, "docs", "drivers.md") }

// Rows returns the rows of the tables in a block of docs/drivers.md: what an earlier run has written, for
// tests that can run in part.
func Rows(root, name string) ([][]string, error) {
	text, err := os.ReadFile(pagePath(root))
	if err != nil {
		return nil, err
	}
	return rows(string(text), name), nil
}

func rows(page, name string) [][]string {
	var found [][]string
	for _, match := range block.FindAllStringSubmatch(page, -1) {
		if match[1] != name {
			continue
		}
		for line := range strings.Lines(match[0]) {
			if line, ok := strings.CutPrefix(strings.TrimSpace(line), "| "); ok {
				found = append(found, strings.Split(strings.TrimSuffix(line, " |"), " | "))
			}
		}
	}
	return found
}

// fill returns the page with a section in the block of that name.
func fill(page, name, section string) (string, error) {
	found := 0
	page = block.ReplaceAllStringFunc(page, func(old string) string {
		if block.FindStringSubmatch(old)[1] != name {
			return old
		}
		found++
		return fmt.Sprintf("<!-- results: %s -->\n%s\n<!-- end -->", name, strings.TrimSpace(section))
	})
	if found != 1 {
		return "", fmt.Errorf("there are %d blocks for %q, want 1", found, name)
	}
	return page, nil
}

// Table is a Markdown table.
type Table struct {
	Header []string
	rows   [][]string
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// NotRun is a result that is missing.
const NotRun = "not run"

// Keep adds the rows that begin with the name from those of an earlier run, or one that says that there
// are none.
func (t *Table) Keep(earlier [][]string, name string) {
	none := true
	for _, row := range earlier {
		if row[0] == name {
			t.Add(row...)
			none = false
		}
	}
	if none {
		row := slices.Repeat([]string{NotRun}, len(t.Header))
		row[0] = name
		t.Add(row...)
	}
}

// String returns the table. Bars and line breaks in cells do not end them.
func (t *Table) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(t.Header, " | "), strings.Repeat("---|", len(t.Header)))
	for _, row := range t.rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = strings.NewReplacer("|", `\|`, "\r", "", "\n", " ").Replace(cell)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}
