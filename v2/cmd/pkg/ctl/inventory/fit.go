package inventory

import (
	"strings"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/output"
)

const (
	// indent is the width of one level of the tree.
	indent = 3
	// minWidth is the length below which nothing is shortened.
	minWidth = 12
)

func (c canvas) room(depth int) int { return max(minWidth, c.width-depth*indent) }

// line joins the parts of a line and shortens the last one to fit.
func (c canvas) line(depth int, cells []output.Cell) string {
	var parts []string
	used := 0
	for i, cell := range cells {
		if last := i == len(cells)-1; last && c.width > 0 {
			cell.Text = middleOut(cell.Text, max(minWidth, c.room(depth)-used))
		}
		used += utf8.RuneCountInString(cell.Text) + len(gap)
		parts = append(parts, c.Paint(cell.Style, cell.Text))
	}
	return strings.Join(parts, gap)
}

func (c canvas) shorten(depth int, path string, before ...string) string {
	if c.width == 0 {
		return path
	}
	used := utf8.RuneCountInString(strings.Join(before, ""))
	return middleOut(path, max(minWidth, c.room(depth)-used))
}

func (c canvas) labelled(depth int, label, path string) string {
	return label + c.shorten(depth, path, label)
}

// middleOut replaces the middle of a text that is longer than n characters. The beginning and
// the end of a path say most.
func middleOut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

// wrap breaks a text into lines, indents all but the first, and paints them.
func (c canvas) wrap(depth int, text string, style output.Style) string {
	return c.wrapAfter("", depth, text, style)
}

func (c canvas) indented(depth int, text string, style output.Style) string {
	return c.wrapAfter(gap, depth, text, style)
}

// wrapAfter is wrap with something before the first line.
func (c canvas) wrapAfter(first string, depth int, text string, style output.Style) string {
	if c.width == 0 {
		return first + c.Paint(style, text)
	}
	var lines []string
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		word = middleOut(word, c.room(depth)-len(gap))
		switch {
		case empty:
			line, empty = line+word, false
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > c.room(depth):
			lines = append(lines, line)
			line = gap + word
		default:
			line += " " + word
		}
	}
	lines = append(lines, line)
	for i, line := range lines {
		lines[i] = c.Paint(style, line)
	}
	return strings.Join(lines, "\n")
}

// columns returns rows as lines of aligned columns. A column without a width is left out; the one with numbers is aligned at
// the right.
func (c canvas) columns(rows [][]output.Cell, widths []int, numbers int) []string {
	lines := make([]string, len(rows))
	for i, row := range rows {
		var parts []string
		for column, cell := range row {
			if widths[column] <= 0 {
				continue
			}
			text := middleOut(cell.Text, widths[column])
			padding := strings.Repeat(" ", widths[column]-utf8.RuneCountInString(text))
			if column == numbers {
				parts = append(parts, padding+text)
			} else {
				parts = append(parts, c.Paint(cell.Style, text)+padding)
			}
		}
		lines[i] = strings.Join(parts, gap)
	}
	return lines
}

// widthsOf returns the widths of columns; nil without rows.
func widthsOf(rows [][]output.Cell) (widths []int) {
	for _, row := range rows {
		for column, cell := range row {
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], utf8.RuneCountInString(cell.Text))
		}
	}
	return widths
}
