package output

import "strings"

// Branch is a node of a tree. Its text has one or more lines.
type Branch struct {
	Text     string
	Branches []Branch
}

// Tree returns a branch and its descendants as text.
func (p *Printer) Tree(root Branch) string {
	var b strings.Builder
	b.WriteString(root.Text + "\n")
	p.children(&b, root.Branches, "")
	return b.String()
}

func (p *Printer) children(b *strings.Builder, branches []Branch, indent string) {
	for i, branch := range branches {
		here, below := "├─ ", "│  "
		if i == len(branches)-1 {
			here, below = "└─ ", "   "
		}
		text := strings.ReplaceAll(branch.Text, "\n", "\n"+p.Paint(Faint, indent+below))
		b.WriteString(p.Paint(Faint, indent+here) + text + "\n")
		p.children(b, branch.Branches, indent+below)
	}
}
