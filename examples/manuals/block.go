// Package manuals reads the code in this repository's Markdown files. Its tests compile every
// block of Go, and decode every block of YAML, so that what a reader copies works.
//
// A block is what stands between two lines of three backquotes; the first one names the
// language. Go blocks are whole files, of which the package clause may be left out.
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
	Language string // in lower case; may be empty
	Code     string
}

// Position is where the block begins, as compilers write it.
func (b Block) Position() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

const fence = "```"

// Read returns the blocks of a Markdown file in their order.
func Read(file string) ([]Block, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	var open *Block
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		language, isFence := strings.CutPrefix(strings.TrimSpace(line), fence)
		switch {
		case isFence && open == nil:
			open = &Block{File: file, Line: number + 1, Language: strings.ToLower(language)}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
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
