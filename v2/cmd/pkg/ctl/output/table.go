package output

import (
	"strings"
	"unicode/utf8"
)

// Cell is text with a style.
type Cell struct {
	Text  string
	Style Style
}

// Text returns a plain cell, with a dash for empty text so that tools can split lines at
// spaces.
func Text(text string) Cell {
	if text == "" {
		text = "-"
	}
	return Cell{Text: text}
}

// Rows is a table. Columns from Narrow on appear only with -o wide; 0 means that all always
// appear. Name is the column that commands take as an argument; with -o name it stands alone.
type Rows struct {
	Header []string
	Narrow int
	Name   int
	Cells  [][]Cell
	// Empty says that there are no rows, such as "no disks".
	Empty string
}

// Add adds a row.
func (r *Rows) Add(cells ...Cell) { r.Cells = append(r.Cells, cells) }

// Table returns the table as text with aligned columns. If it is empty, a note says so: a header
// alone looks like a mistake.
func (p *Printer) Table(r *Rows) string {
	if len(r.Cells) == 0 && r.Empty != "" && p.Note != nil {
		p.Note(Printable(r.Empty))
	}
	if p.Format == Name {
		var b strings.Builder
		for _, row := range PrintableCopy(r.Cells) {
			b.WriteString(row[r.Name].Text + "\n")
		}
		return b.String()
	}
	columns := len(r.Header)
	if r.Narrow > 0 && p.Format != Wide {
		columns = r.Narrow
	}
	header := make([]Cell, columns)
	for i := range header {
		header[i] = Cell{r.Header[i], Faint}
	}
	rows := PrintableCopy(r.Cells)
	if !p.NoHeaders {
		rows = append([][]Cell{header}, rows...)
	}
	widths := make([]int, columns)
	for _, row := range rows {
		for i := range columns {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i].Text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i := range columns {
			b.WriteString(p.Paint(row[i].Style, row[i].Text))
			if i < columns-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(row[i].Text)+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
