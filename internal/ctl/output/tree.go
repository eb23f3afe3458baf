package output

import "strings"

// Branch is a line of a tree, or a few, with what hangs below it.
type Branch struct {
	Text     string
	Branches []Branch
}

// Tree returns a branch and all below it as text.
func (p *Printer) Tree(root Branch) string {
	var b strings.Builder
	b.WriteString(root.Text + "\n")
	p.twigs(&b, root.Branches, "")
	return b.String()
}

func (p *Printer) twigs(b *strings.Builder, branches []Branch, indent string) {
	for i, branch := range branches {
		here, below := "├─ ", "│  "
		if i == len(branches)-1 {
			here, below = "└─ ", "   "
		}
		text := strings.ReplaceAll(branch.Text, "\n", "\n"+p.Paint(Faint, indent+below))
		b.WriteString(p.Paint(Faint, indent+here) + text + "\n")
		p.twigs(b, branch.Branches, indent+below)
	}
}
