// Package prose keeps the words that CONTRIBUTING.md lists out of the repository's text.
package prose

import (
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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

const (
	guide   = "CONTRIBUTING.md"
	heading = "\n### Words we avoid\n"
)

func TestWords(t *testing.T) {
	repository := os.DirFS(filepath.Join("..", "..", ".."))
	expression := avoided(t, repository)
	found := map[string][]finding{} // by directory
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
		found[dir] = append(found[dir], search(expression, name, string(text))...)
		return nil
	})
	require.NoError(t, err)
	if files < 500 {
		t.Errorf("read only %d files", files)
	}
	report(t, found)
}

// report prints the findings, and their number by directory.
func report(t *testing.T, found map[string][]finding) {
	t.Helper()
	var summary strings.Builder
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		for _, f := range found[dir] {
			t.Error(f)
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

// avoided matches the words of the table in the guide.
func avoided(t *testing.T, repository fs.FS) *regexp.Regexp {
	t.Helper()
	text, err := fs.ReadFile(repository, guide)
	require.NoError(t, err)
	_, table, _ := strings.Cut(string(text), heading)
	table, _, _ = strings.Cut(table, "\n### ")
	var words []string
	for _, row := range tableRow.FindAllStringSubmatch(table, -1) {
		for _, span := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			words = append(words, strings.ReplaceAll(regexp.QuoteMeta(span[1]), " ", `\s+`))
		}
	}
	if len(words) < 10 {
		t.Fatalf("%s lists only %q", guide, words)
	}
	return regexp.MustCompile(`(?i)\b(there\s+)?(?:` + strings.Join(words, "|") + `)\b(\s+longer\b)?`)
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

// finding is a word, and where it is.
type finding struct {
	file string
	line int
	word string
	text string // the line
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q in %q", f.file, f.line, f.word, f.text)
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// search finds the words in a file.
func search(expression *regexp.Regexp, name, text string) []finding {
	lines := strings.Split(text, "\n")
	var found []finding
	for _, p := range passages(name, text) {
		for _, at := range expression.FindAllStringSubmatchIndex(p.text, -1) {
			if at[2] >= 0 || at[4] >= 0 { // "there is none" and "that is no longer" are plain English
				continue
			}
			line := p.lineAt(at[0])
			word := strings.Join(strings.Fields(p.text[at[0]:at[1]]), " ")
			found = append(found, finding{name, line, word, strings.TrimSpace(lines[line-1])})
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found
}

// passages returns what people read in a file: all of it, but of Go only strings and comments, and
// nothing that a program generated.
func passages(name, text string) []passage {
	switch {
	case path.Ext(name) == ".go" && generated.MatchString(text):
		return nil
	case path.Ext(name) == ".go":
		return passagesOfGo(text)
	case name == guide:
		before, table, _ := strings.Cut(text, heading)
		table, after, _ := strings.Cut(table, "\n### ")
		text = before + strings.Repeat("\n", strings.Count(heading+table, "\n")) + "\n### " + after
	}
	p := passage{}
	for i, line := range strings.Split(text, "\n") {
		p.add(i+1, marker.ReplaceAllString(line, ""))
	}
	return []passage{p}
}

// marker begins the lines of comments, and would divide a phrase.
var marker = regexp.MustCompile(`^\s*(?://+|#+|\*|>)`)

// passagesOfGo joins the lines of a comment, and strings that are added.
func passagesOfGo(text string) []passage {
	var (
		all  []passage
		last token.Token // of what the current passage has
		s    scanner.Scanner
	)
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		line := file.Line(pos)
		switch tok {
		case token.EOF:
			return all
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
					part = marker.ReplaceAllString(part, "")
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

// unquote returns what a string says. Escapes of an interpreted one that break lines become spaces,
// so that lines stay those of the source.
func unquote(literal string) string {
	text, err := strconv.Unquote(literal)
	if err != nil || literal[0] == '`' {
		return strings.Trim(literal, "`")
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// passage is text of one or more lines, joined.
type passage struct {
	text   string
	starts []int // offsets of the lines
	lines  []int // their numbers
}

func (p *passage) add(line int, text string) {
	p.starts, p.lines = append(p.starts, len(p.text)), append(p.lines, line)
	p.text += text + " "
}

func (p *passage) lineAt(offset int) int {
	i, exact := slices.BinarySearch(p.starts, offset)
	if !exact {
		i--
	}
	return p.lines[i]
}

func TestSearch(t *testing.T) {
	expression := regexp.MustCompile(`(?i)\b(there\s+)?(?:badword|bad\s+phrase)\b(\s+longer\b)?`)
	for _, c := range []struct {
		file, text string
		want       []int // lines
	}{
		{"a.go", "package a\n\n// A bad\n// phrase.\nvar badword = 1", []int{3}},
		{"a.go", "package a\n\nvar a = \"x\\n\" +\n\t\"a bad \" +\n\t\"phrase\"\n", []int{4}},
		{"a.go", "package a\n\nvar a, b = `\nBadword`, \"bad\"\nvar c = \"phrase\" // badword\n", []int{4, 5}},
		{"a.go", "// Code generated by x. DO NOT EDIT.\n\npackage a // badword\n", nil},
		{"a.md", "badwords\n> a bad\n> phrase, a badword\nthere\nbad phrase", []int{2, 3}},
		{guide, "badword" + heading + "\nbadword\n\n### Next\n\nbadword\n", []int{1, 8}},
	} {
		var got []int
		for _, f := range search(expression, c.file, c.text) {
			got = append(got, f.line)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s %q: found on lines %v, want %v", c.file, c.text, got, c.want)
		}
	}
}
