package output

import (
	"slices"
	"strings"
)

// Branch is a node of a tree. Its text has one or more lines.
type Branch struct {
	Text     string
	Branches []Branch
}

// Tree returns a branch and its descendants as text.
func (p *Printer) Tree(root Branch) string {
	var b strings.Builder
	b.WriteString(root.Text + "\n")
	for _, line := range p.Lines(root.Branches) {
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}

// Line is one line of a tree.
type Line struct {
	Text string
	Path []Branch // from the top to the branch of this line
}

// Lines returns branches and their descendants line by line.
func (p *Printer) Lines(branches []Branch) []Line { return p.lines(nil, branches, "", nil) }

func (p *Printer) lines(all []Line, branches []Branch, indent string, path []Branch) []Line {
	for i, branch := range branches {
		here, below := "├─ ", "│  "
		if i == len(branches)-1 {
			here, below = "└─ ", "   "
		}
		path := append(slices.Clip(path), branch)
		for text := range strings.SplitSeq(branch.Text, "\n") {
			all = append(all, Line{p.Paint(Faint, indent+here) + text, path})
			here = below
		}
		all = p.lines(all, branch.Branches, indent+below, path)
	}
	return all
}
