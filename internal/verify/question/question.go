// Package question is the catalogue of what only a Windows machine can tell. csi-proxy-verify
// asks these questions, and docs/testing.md shows them.
package question

import (
	"fmt"
	"slices"
	"strings"
)

// Question is one open question. Texts are Markdown without line breaks.
type Question struct {
	ID       string // it never changes, and never gets another meaning
	Question string
	Expected string // what we believe
	IfNot    string // what happens if we are wrong
	How      string // how to see it without csi-proxy-verify
	// NotAsked is why csi-proxy-verify does not ask it. It is empty if the program does.
	NotAsked string
}

// Section is a table of docs/testing.md.
type Section struct {
	Name      string // as in <!-- questions: name -->
	Title     string
	Questions []Question
}

// Sections returns the whole catalogue.
func Sections() []Section {
	return []Section{
		{"checks", "Checks on a real machine", checks},
		{"paths", "Paths and links", paths},
		{"disks", "Disks and volumes", disks},
		{"hardware", "Disks that are not virtual", hardware},
		{"iscsi", "iSCSI", iscsi},
		{"smb", "SMB", smb},
	}
}

// All returns the questions of all sections.
func All() []Question {
	var all []Question
	for _, section := range Sections() {
		all = append(all, section.Questions...)
	}
	return all
}

// Find returns the question with an ID.
func Find(id string) (Question, bool) {
	all := All()
	i := slices.IndexFunc(all, func(q Question) bool { return q.ID == id })
	if i < 0 {
		return Question{}, false
	}
	return all[i], true
}

// Markdown returns the section as a table. Columns without any text are left out.
func (s Section) Markdown() string {
	type column struct {
		title string
		text  func(Question) string
	}
	columns := []column{
		{"ID", func(q Question) string { return q.ID }},
		{"Question", func(q Question) string { return q.Question }},
		{"Expected", func(q Question) string { return q.Expected }},
		{"If not", func(q Question) string { return q.IfNot }},
		{"How to see it", func(q Question) string { return q.How }},
		{"`csi-proxy-verify`", func(q Question) string {
			if q.NotAsked == "" {
				return "asks it"
			}
			return q.NotAsked
		}},
	}
	columns = slices.DeleteFunc(columns, func(c column) bool {
		return !slices.ContainsFunc(s.Questions, func(q Question) bool { return c.text(q) != "" })
	})
	var b strings.Builder
	row := func(cell func(i int) string) {
		b.WriteString("|")
		for i := range columns {
			fmt.Fprintf(&b, " %s |", strings.ReplaceAll(cell(i), "|", `\|`))
		}
		b.WriteString("\n")
	}
	row(func(i int) string { return columns[i].title })
	fmt.Fprintln(&b, "|"+strings.Repeat("---|", len(columns)))
	for _, q := range s.Questions {
		row(func(i int) string { return columns[i].text(q) })
	}
	return b.String()
}
