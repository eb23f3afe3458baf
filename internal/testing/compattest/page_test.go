// Package compattest checks docs/compatibility.md: the tests, commands, flags and paths that it names
// exist, and its summary matches its rows. Links are checked by internal/testing/prose.
package compattest

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The page, in the repository.
const page = "docs/compatibility.md"

func TestPage(t *testing.T) {
	r := load(t)
	text, err := os.ReadFile(r.file(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range r.check(string(text)) {
		t.Errorf("%s: %s", page, problem)
	}
	// A changed layout must not hide the rows from this test.
	if rows, _ := rowsOf(string(text)); len(rows) < 130 {
		t.Errorf("%s has only %d rows", page, len(rows))
	}
}

// The shape of the page.
var (
	rowLine    = regexp.MustCompile(`(?m)^\| ([A-Z])(\d+) \| (.*) \|$`)
	rowName    = regexp.MustCompile(`\b[DLECO][0-9]+\b`)
	status     = regexp.MustCompile(`^\*\*(Kept|Differs|Elsewhere)\*\*`)
	inlineLink = regexp.MustCompile(`\]\(([^)]+)\)`)
	testLink   = regexp.MustCompile(`\[((?:Test|Example)(?:[A-Z_]\w*)?)\]`)
	definition = regexp.MustCompile(`(?m)^\[(\w+)\]: (\S+)$`)
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	flagWord   = regexp.MustCompile(`^--?([a-z][\w-]*)(?:=|$)`)
	sourcePath = regexp.MustCompile(`^(?:client|cmd|deploy|docs|examples|hack|internal|pkg|test|tools)(?:/[\w.-]+)*$`)
)

// row is a promise.
type row struct {
	name  string // such as D1
	cells []string
}

// rowsOf returns the promises of a page, and what follows them.
func rowsOf(text string) (rows []row, summary string) {
	promises, summary, _ := strings.Cut(text, "\n## What differs\n")
	for _, match := range rowLine.FindAllStringSubmatch(promises, -1) {
		rows = append(rows, row{match[1] + match[2], strings.Split(match[3], " | ")})
	}
	return rows, summary
}

// check returns what is wrong with a page.
func (r *repository) check(text string) []string {
	problems := checkRows(text)
	problems = append(problems, r.checkTests(text)...)
	for _, match := range codeSpan.FindAllStringSubmatch(text, -1) {
		if problem := r.checkCode(match[1]); problem != "" {
			problems = append(problems, fmt.Sprintf("`%s`: %s", match[1], problem))
		}
	}
	return problems
}

// checkRows checks that every promise has an answer and a reference, and that the summary lists those
// that differ.
func checkRows(text string) []string {
	var problems []string
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }

	rows, summary := rowsOf(text)
	last := map[string]int{}
	known, differs := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		letter := row.name[:1]
		last[letter]++
		if want := fmt.Sprint(letter, last[letter]); row.name != want {
			report("row %s must be %s", row.name, want)
		}
		known[row.name] = true
		if len(row.cells) != 3 {
			report("row %s has %d cells after its number, want 3", row.name, len(row.cells))
			continue
		}
		switch match := status.FindStringSubmatch(row.cells[1]); {
		case match == nil:
			report("row %s must begin with Kept, Differs or Elsewhere", row.name)
		case match[1] == "Differs":
			differs[row.name] = true
		}
		if !inlineLink.MatchString(row.cells[2]) && !testLink.MatchString(row.cells[2]) {
			report("row %s has no reference", row.name)
		}
	}

	listed := map[string]bool{}
	for _, name := range rowName.FindAllString(summary, -1) {
		listed[name] = true
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(differs)), slices.Sorted(maps.Keys(listed))); diff != "" {
		report("what differs, -by the rows +by the summary: %s", diff)
	}
	for _, name := range rowName.FindAllString(codeSpan.ReplaceAllString(text, ""), -1) {
		if !known[name] {
			report("no row %s", name)
		}
	}
	return problems
}

// checkTests looks for the tests that the page names.
func (r *repository) checkTests(text string) []string {
	var problems []string
	files := map[string]string{}
	for _, match := range definition.FindAllStringSubmatch(text, -1) {
		files[match[1]] = match[2]
	}
	used := map[string]bool{}
	for _, match := range testLink.FindAllStringSubmatch(definition.ReplaceAllString(text, ""), -1) {
		used[match[1]] = true
		if files[match[1]] == "" {
			problems = append(problems, fmt.Sprintf("the file of %s is missing", match[1]))
		}
	}
	for name, file := range files {
		source, err := os.ReadFile(r.file(path.Join(path.Dir(page), file)))
		switch {
		case err != nil:
			problems = append(problems, err.Error())
		case !strings.Contains(string(source), "\nfunc "+name+"("):
			problems = append(problems, fmt.Sprintf("%s has no %s", file, name))
		case !used[name]:
			problems = append(problems, fmt.Sprintf("no row names %s", name))
		}
	}
	return problems
}

// checkCode looks at commands, flags and paths.
func (r *repository) checkCode(code string) string {
	if sourcePath.MatchString(code) {
		if _, err := os.Stat(r.file(code)); err != nil {
			return "no such path"
		}
		return ""
	}
	words := strings.Fields(code)
	program := strings.TrimSuffix(words[0], ".exe")
	switch {
	case program == "make" && len(words) > 1:
		if !r.targets[words[1]] {
			return "the Makefile has no such target"
		}
	case program == "csi-proxyctl":
		command := words[1:]
		if i := slices.IndexFunc(command, flagWord.MatchString); i >= 0 {
			command = command[:i]
		}
		if !r.commands[strings.Join(command, " ")] {
			return "csi-proxyctl has no such command"
		}
	}
	for _, word := range words {
		match := flagWord.FindStringSubmatch(word)
		if match == nil {
			continue
		}
		flags := r.flags[program]
		if flags == nil { // flags alone are the daemon's, or of another project's program
			flags = r.flags["csi-proxy"]
			if file, foreign := foreignFlags[match[1]]; foreign {
				if problem := r.mentions(file, match[1]); problem != "" {
					return problem
				}
				continue
			}
		}
		if !flags[match[1]] {
			return "no flag " + word
		}
	}
	return ""
}

// foreignFlags are flags of other projects' programs, each with the file that sets it.
var foreignFlags = map[string]string{
	"csi-address":               "deploy/drivers/driver-daemon.yaml",
	"endpoint":                  "deploy/drivers/driver-daemon.yaml",
	"kubelet-registration-path": "deploy/drivers/driver-daemon.yaml",
	"plugin-registration-path":  "deploy/drivers/driver-library.yaml",
}

func (r *repository) mentions(file, flag string) string {
	text, err := os.ReadFile(r.file(file))
	switch {
	case err != nil:
		return err.Error()
	case !strings.Contains(string(text), "--"+flag+"="):
		return fmt.Sprintf("%s does not set --%s", file, flag)
	}
	return ""
}
