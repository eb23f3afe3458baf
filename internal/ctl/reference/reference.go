// Package reference writes the pages of docs/cli from the commands themselves.
//
// cobra has a generator of its own, which would add two modules to ours for the sake of man
// pages and reStructuredText; what is needed of it fits on one page.
package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Write fills a directory: a page for each command directly below the root, with all that
// is below it, and README.md for the root. Pages of commands that are gone are removed.
func Write(dir string, root *cobra.Command) error {
	old, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	for _, page := range old {
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	for name, text := range Pages(root) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Pages returns all pages by the names of their files.
func Pages(root *cobra.Command) map[string]string {
	pages := map[string]string{"README.md": overview(root)}
	for _, c := range root.Commands() {
		if !c.Hidden {
			var b strings.Builder
			b.WriteString(note)
			section(&b, c, 1)
			pages[c.Name()+".md"] = b.String()
		}
	}
	return pages
}

// note keeps people from editing what is written anew.
const note = "<!-- Written by 'make generate' from internal/ctl/command; do not edit. -->\n\n"

func overview(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(note)
	section(&b, root, 1)
	b.WriteString("\n## Commands\n\n| Command | What it does |\n|---|---|\n")
	for _, c := range root.Commands() {
		if !c.Hidden {
			fmt.Fprintf(&b, "| [%s](%s.md) | %s |\n", c.Name(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// section writes a command, and those below it unless it is the root.
func section(b *strings.Builder, c *cobra.Command, level int) {
	if level > 1 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s %s\n\n%s\n", strings.Repeat("#", min(level, 4)), c.CommandPath(), escape(strings.TrimSpace(c.Long)))
	if !c.HasAvailableSubCommands() {
		block(b, "  "+c.UseLine())
	}
	if c.Example != "" {
		b.WriteString("\nExamples:\n")
		block(b, c.Example)
	}
	if flags := strings.TrimRight(c.NonInheritedFlags().FlagUsages(), "\n"); flags != "" {
		b.WriteString("\nFlags:\n")
		block(b, flags)
	}
	if !c.HasParent() {
		return
	}
	for _, child := range c.Commands() {
		if !child.Hidden {
			section(b, child, level+1)
		}
	}
}

// escape keeps Markdown from taking backslashes of Windows paths for its own.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `<`, `\<`, `*`, `\*`, `_`, `\_`).Replace(text)
}

// block writes text as it is, indented as Markdown wants it.
func block(b *strings.Builder, text string) {
	b.WriteByte('\n')
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(strings.TrimRight("    "+strings.TrimPrefix(line, "  "), " ") + "\n")
	}
}
