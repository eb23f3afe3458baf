// Package manuals reads the code in this repository's Markdown files. Its tests compile every
// block of Go, and decode every block of YAML, so that what a reader copies works.
//
// A block is between two lines of three or more backquotes or tildes; the first line names the
// language. Go blocks are whole files, but may omit the package clause.
package manuals

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Block is a block of code in a Markdown file.
type Block struct {
	File     string // the Markdown file
	Line     int    // on which the code begins, counted from 1
	Language string // one of Languages
	Code     string
}

// Position is where the block begins, as compilers write it.
func (b Block) Position() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Languages are those that a block may be in. Other spellings, or words behind one, are errors:
// the block would not be checked.
var Languages = []string{"go", "mermaid", "sh", "text", "yaml"}

// fence returns the marks with which a block begins or ends, if a line has them, and what stands
// behind them.
func fence(line string) (marks, info string) {
	line = strings.TrimSpace(line)
	for _, mark := range []string{"`", "~"} {
		info := strings.TrimLeft(line, mark)
		// Three marks with others behind them are code within a line.
		if marks := line[:len(line)-len(info)]; len(marks) >= 3 && !strings.Contains(info, mark) {
			return marks, strings.TrimSpace(info)
		}
	}
	return "", ""
}

// Read returns the blocks of a Markdown file in their order.
func Read(file string) ([]Block, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	var opening string
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		marks, info := fence(line)
		switch {
		case open == nil && marks != "":
			open, opening = &Block{File: file, Line: number + 1, Language: info}, marks
			if !slices.Contains(Languages, info) {
				return nil, fmt.Errorf("%s: the language of the block is %q, not one of %s",
					open.Position(), info, strings.Join(Languages, ", "))
			}
		case open == nil:
		case strings.HasPrefix(marks, opening) && info == "":
			blocks = append(blocks, *open)
			open = nil
		default:
			open.Code += line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block is not closed", open.Position())
	}
	return blocks, nil
}

// ReadAll returns the blocks in one of the languages, of all Markdown files below a directory.
// What git does not keep is left out: directories whose names begin with a dot, bin and dist.
func ReadAll(dir string, languages ...string) ([]Block, error) {
	var found []Block
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != dir && (strings.HasPrefix(name, ".") || name == "bin" || name == "dist"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		blocks, err := Read(path)
		for _, block := range blocks {
			if slices.Contains(languages, block.Language) {
				found = append(found, block)
			}
		}
		return err
	})
	return found, err
}
