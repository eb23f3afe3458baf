package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// relativeLink is a Markdown link to a file of the source.
var relativeLink = regexp.MustCompile(`\]\(([A-Za-z0-9_./-]+(?:#[^)\s]*)?)\)`)

// notes returns what the change log says about the version. Its links to files of the source become
// links to the tag, if there is an address of the project.
func (r *release) notes() ([]byte, error) {
	const name = "CHANGELOG.md"
	text, err := os.ReadFile(filepath.Join(r.source, name))
	if err != nil {
		return nil, err
	}
	heading := regexp.MustCompile(`(?m)^## \[?` + regexp.QuoteMeta(r.number()) + `\]?( .*)?$`).FindIndex(text)
	if heading == nil {
		return nil, fmt.Errorf("%s has no heading '## [%s] - DATE'; write one above the changes of the version", name, r.number())
	}
	section := text[heading[1]:]
	if next := regexp.MustCompile(`(?m)^## `).FindIndex(section); next != nil {
		section = section[:next[0]]
	}
	section = bytes.TrimSpace(section)
	if len(section) == 0 {
		return nil, fmt.Errorf("%s says nothing below the heading of %s", name, r.number())
	}
	if r.home != "" {
		section = relativeLink.ReplaceAll(section, []byte("]("+r.home+"/blob/"+r.version+"/$1)"))
	}
	return append(section, '\n'), nil
}
