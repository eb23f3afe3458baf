package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// block is a part of the page that this program replaces.
var block = regexp.MustCompile(`(?s)<!-- measured: ([a-z-]+) -->\n.*?<!-- end -->`)

// fill puts sections into the blocks of a page. Each section must have a block, and each block a
// section.
func fill(page string, sections map[string]string) (string, error) {
	missing := maps.Clone(sections)
	var unknown []string
	page = block.ReplaceAllStringFunc(page, func(old string) string {
		name := block.FindStringSubmatch(old)[1]
		section, ok := sections[name]
		if !ok {
			unknown = append(unknown, name)
			return old
		}
		delete(missing, name)
		return fmt.Sprintf("<!-- measured: %s -->\n%s\n<!-- end -->", name, strings.TrimSpace(section))
	})
	if len(unknown) > 0 {
		return "", fmt.Errorf("no section for the blocks %v", unknown)
	}
	if len(missing) > 0 {
		return "", fmt.Errorf("no block for the sections %v", slices.Sorted(maps.Keys(missing)))
	}
	return page, nil
}

// table is a Markdown table.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String returns the table, with the first column left-aligned and the numbers in the others
// right-aligned. Without rows it says that the part was left out.
func (t *table) String() string {
	if len(t.rows) == 0 {
		return leftOut
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|---|%s\n", strings.Join(t.header, " | "), strings.Repeat("--:|", len(t.header)-1))
	for _, row := range t.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

const leftOut = "Left out in this run."
