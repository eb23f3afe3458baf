package inventory

import (
	"strings"
	"unicode/utf8"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/ctl/output"
)

const (
	// indent is how far a branch stands to the right of the one above.
	indent = 3
	// least is what is always left of something that is shortened.
	least = 12
)

// room is how many characters a line has, as deep in the tree as that.
func (c canvas) room(depth int) int { return max(least, c.width-depth*indent) }

// line joins the parts of a line. If there is no room for all, the last is shortened.
func (c canvas) line(depth int, cells []output.Cell) string {
	var parts []string
	taken := 0
	for i, cell := range cells {
		if last := i == len(cells)-1; last && c.width > 0 {
			cell.Text = middleOut(cell.Text, max(least, c.room(depth)-taken))
		}
		taken += utf8.RuneCountInString(cell.Text) + len(gap)
		parts = append(parts, c.Paint(cell.Style, cell.Text))
	}
	return strings.Join(parts, gap)
}

// shorten makes a path fit behind what stands before it. Its beginning and its end say most.
func (c canvas) shorten(depth int, path string, before ...string) string {
	if c.width == 0 {
		return path
	}
	taken := utf8.RuneCountInString(strings.Join(before, ""))
	return middleOut(path, max(least, c.room(depth)-taken))
}

// labelled is a path behind a word.
func (c canvas) labelled(depth int, label, path string) string {
	return label + c.shorten(depth, path, label)
}

// middleOut leaves out the middle of a text that is longer than n characters.
func middleOut(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

// wrap breaks a text between words into lines, of which the second and further ones stand a
// little to the right, and paints them.
func (c canvas) wrap(depth int, text string, style output.Style) string {
	if c.width == 0 {
		return c.Paint(style, text)
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
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
