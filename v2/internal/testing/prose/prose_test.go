// Package prose keeps the words that CONTRIBUTING.md lists out of the repository's text.
package prose

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

const (
	guide   = "CONTRIBUTING.md"
	heading = "\n### Words we avoid\n"
)

func TestWords(t *testing.T) {
	repository := os.DirFS(filepath.Join("..", "..", "..", ".."))
	phrases := avoided(t, repository)
	found := map[string][]match{} // by directory
	files := 0
	err := fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if skipped(name) {
				return fs.SkipDir
			}
			return nil
		case !isText(name):
			return nil
		}
		text, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		files++
		dir := path.Dir(name)
		found[dir] = append(found[dir], search(phrases, name, string(text))...)
		return nil
	})
	require.NoError(t, err)
	if files < 500 {
		t.Errorf("read only %d files", files)
	}
	report(t, found)
}

// report prints the matches, and their number by directory.
func report(t *testing.T, found map[string][]match) {
	t.Helper()
	var summary strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		for _, m := range found[dir] {
			t.Error(m)
		}
		if n := len(found[dir]); n > 0 {
			fmt.Fprintf(&summary, "%5d  %s\n", n, dir)
		}
	}
	if summary.Len() > 0 {
		t.Errorf("words that %s avoids, by directory:\n%s", guide, summary.String())
	}
}

var (
	tableRow = regexp.MustCompile("(?m)^\\| (`.*?`) \\|")
	codeSpan = regexp.MustCompile("`([^`]+)`")
)

// avoided returns the words and phrases of the table in the guide.
func avoided(t *testing.T, repository fs.FS) (phrases []string) {
	t.Helper()
	text, err := fs.ReadFile(repository, guide)
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), heading)
	table, _, _ = strings.Cut(table, "\n### ")
	for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			phrases = append(phrases, span[1])
		}
	}
	if len(phrases) < 10 {
		t.Fatalf("%s lists only %q", guide, phrases)
	}
	return phrases
}

func skipped(dir string) bool {
	switch base := path.Base(dir); {
	case dir == "bin", dir == "dist", strings.HasSuffix(dir, "testdata/fuzz"):
		return true
	default:
		return strings.HasPrefix(base, ".") && dir != "." && dir != ".github" && dir != ".ci"
	}
}

func isText(name string) bool {
	switch path.Ext(name) {
	case ".go", ".md", ".yaml", ".yml", ".tpl", ".tmpl", ".json", ".txt", ".proto", ".sh", ".c", ".h":
		return true
	}
	switch path.Base(name) {
	case "Makefile", "OWNERS", "run":
		return true
	}
	return false
}

// match is a phrase, and where it is.
type match struct {
	file   string
	line   int
	phrase string
	text   string // the line
}

func (m match) String() string {
	return fmt.Sprintf("%s:%d: %q in %q", m.file, m.line, m.phrase, m.text)
}

const generated = "// Code generated "

// search finds phrases in a file.
func search(phrases []string, name, text string) []match {
	var lines []string
	var found []match
	for _, p := range passages(name, text) {
		for _, phrase := range phrases {
			for _, at := range p.find(phrase) {
				if lines == nil {
					lines = strings.Split(text, "\n")
				}
				line := p.lineAt(at)
				found = append(found, match{name, line, phrase, strings.TrimSpace(lines[line-1])})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return cmp.Compare(a.line, b.line) })
	return found
}

// find returns where a phrase is. "There is none" and "that is no longer" are plain English.
func (p *passage) find(phrase string) (offsets []int) {
	for from := 0; ; {
		at := bytes.Index(p.text[from:], []byte(phrase))
		if at < 0 {
			return offsets
		}
		at += from
		from = at + len(phrase)
		before, after := p.text[:at], p.text[from:]
		whole := (len(before) == 0 || !isWord(before[len(before)-1])) && !isWord(after[0])
		if whole && !bytes.HasSuffix(before, []byte("there ")) && !bytes.HasPrefix(after, []byte(" longer")) {
			offsets = append(offsets, at)
		}
	}
}

func isWord(b byte) bool { return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' }

// passages returns what people read in a file: all of it, but of Go only strings, comments and names, and
// nothing that a program generated.
func passages(name, text string) []passage {
	switch {
	case path.Ext(name) == ".go" && isGenerated(text):
		return nil
	case path.Ext(name) == ".go":
		return passagesOfGo(text)
	case name == guide:
		before, table, _ := strings.Cut(text, heading)
		table, after, _ := strings.Cut(table, "\n### ")
		text = before + strings.Repeat("\n", strings.Count(heading+table, "\n")) + "\n### " + after
	}
	p := passage{}
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		p.add(number, unmarked(line))
	}
	return []passage{p}
}

func isGenerated(text string) bool {
	return strings.HasPrefix(text, generated) || strings.Contains(text, "\n"+generated)
}

// unmarked returns a line without what begins the lines of comments, and would divide a phrase.
func unmarked(line string) string {
	line = strings.TrimLeft(line, " \t")
	for _, marker := range []string{"/", "#"} {
		if rest := strings.TrimLeft(line, marker); rest != line {
			return rest
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(line, "*"), ">")
}

// passagesOfGo joins the lines of a comment, and strings that are added. The last passage has the words of names.
func passagesOfGo(text string) []passage {
	var (
		all   []passage
		last  token.Token // of what the current passage has
		s     scanner.Scanner
		names passage
		seen  = map[string]bool{}
	)
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		line := file.Line(pos)
		switch tok {
		case token.EOF:
			return append(all, names)
		case token.IDENT:
			if last = token.ILLEGAL; !seen[literal] {
				seen[literal] = true
				names.add(line, splitName(literal)+" ;")
			}
		case token.COMMENT, token.STRING:
			if tok != last {
				all = append(all, passage{})
			}
			p := &all[len(all)-1]
			if tok == token.STRING {
				literal = unquote(literal)
			}
			for i, part := range strings.Split(literal, "\n") {
				if tok == token.COMMENT {
					part = unmarked(part)
				}
				// An escaped line break is on one line of the source.
				p.add(min(line+i, file.LineCount()), part)
			}
			last = tok
		case token.ADD:
		case token.SEMICOLON: // also inserted at the end of a line, before a comment
			if last == token.STRING {
				last = token.ILLEGAL
			}
		default:
			last = token.ILLEGAL
		}
	}
}

// splitName returns the words of a name: late limit for lateLimit, LateLimit and late_limit.
func splitName(name string) string {
	var words strings.Builder
	letters := []rune(name)
	for i, letter := range letters {
		capital := unicode.IsUpper(letter)
		begins := capital && i > 0 && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if begins || letter == '_' {
			words.WriteByte(' ')
		}
		if letter != '_' {
			words.WriteRune(letter)
		}
	}
	return words.String()
}

// unquote returns what a string says. Escapes of an interpreted one that break lines become spaces,
// so that lines stay those of the source.
func unquote(literal string) string {
	text, err := strconv.Unquote(literal)
	if err != nil || literal[0] == '`' {
		return strings.Trim(literal, "`")
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// passage is text of one or more lines, joined, in small letters and with one space between words.
type passage struct {
	text   []byte
	starts []int // offsets of the lines
	lines  []int // their numbers
}

func (p *passage) add(line int, text string) {
	start := len(p.text)
	for word := range strings.FieldsSeq(text) {
		p.text = append(append(p.text, strings.ToLower(word)...), ' ')
	}
	if len(p.text) > start {
		p.starts, p.lines = append(p.starts, start), append(p.lines, line)
	}
}

func (p *passage) lineAt(offset int) int {
	i, exact := slices.BinarySearch(p.starts, offset)
	if !exact {
		i--
	}
	return p.lines[i]
}
