//go:build drivers

package ported

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// countLines returns how many lines of Go code the port deletes and adds, without blank lines, comments and tests.
func countLines(t *testing.T, p *tree, root string) (deleted, added int) {
	t.Helper()
	count := func(before, after []byte) {
		difference := codeLines(after)
		for line, n := range codeLines(before) {
			difference[line] -= n
		}
		for _, n := range difference {
			added += max(n, 0)
			deleted += max(-n, 0)
		}
	}
	read := func(name ...string) []byte {
		content, err := os.ReadFile(filepath.Join(name...))
		require.NoError(t, err)
		return content
	}
	for _, name := range p.deleted {
		if !strings.HasSuffix(name, "_test.go") {
			count(read(p.sources, name), nil)
		}
	}
	edited, err := p.edited(program)
	require.NoError(t, err)
	for name, content := range edited {
		count(read(p.sources, name), content)
	}
	files, err := p.files(root)
	require.NoError(t, err)
	for _, name := range files {
		if !isTest(name) {
			count(nil, read("testdata", p.name, name))
		}
	}
	return deleted, added
}

// codeLines returns how often each line that has code is in a file.
func codeLines(source []byte) map[string]int {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(source))
	s.Init(file, source, nil, 0)
	lines, text, last := map[string]int{}, strings.Split(string(source), "\n"), 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return lines
		}
		if line := file.Line(pos); line != last && literal != "\n" {
			lines[text[line-1]]++
			last = line
		}
	}
}
