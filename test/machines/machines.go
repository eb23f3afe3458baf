// Package machines holds what machines answered to csi-proxy-verify, in a directory per machine:
//
//	answers.json    as csi-proxy-verify wrote it
//	notes.json      why the machine and the emulator differ, see [Note]
//	calls.jsonl.gz  the recorded calls, if there are any; calls.1.jsonl.gz has those before them
package machines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

// Machine is one directory.
type Machine struct {
	Name    string
	Answers answer.Document
	Notes   []Note

	Recordings []Recording
}

// The files of a machine.
const (
	answersFile = "answers.json"
	notesFile   = "notes.json"
)

// emulator is the machine that the others are compared with.
const emulator = "emulator"

// Load reads all machines in a directory, and replays their recordings: the emulator first, then Wine, then
// Windows.
func Load(ctx context.Context, dir string) ([]Machine, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []Machine
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		m, err := load(dir, entry.Name())
		if err != nil {
			return nil, err
		}
		m.Recordings = replayAll(ctx, filepath.Join(dir, m.Name))
		list = append(list, m)
	}
	order := []answer.Kind{answer.Emulator, answer.Wine, answer.Windows}
	slices.SortStableFunc(list, func(a, b Machine) int {
		return slices.Index(order, a.Answers.Machine.Kind) - slices.Index(order, b.Answers.Machine.Kind)
	})
	return list, nil
}

func load(dir, name string) (Machine, error) {
	m := Machine{Name: name}
	path := filepath.Join(dir, name, answersFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return m, err
	}
	if m.Answers, err = answer.Parse(content); err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	path = filepath.Join(dir, name, notesFile)
	content, err = os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&m.Notes)
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Check returns a sentence for each difference from the emulator that no note explains, for each note that
// explains nothing, and for each recording that cannot be replayed.
func Check(list []Machine) (problems []string) {
	i := slices.IndexFunc(list, func(m Machine) bool { return m.Name == emulator })
	if i < 0 {
		return []string{"there is no directory " + emulator}
	}
	for _, m := range list {
		differ := map[string]int{} // how often, by what a note names
		for _, d := range answer.Compare(m.Answers, list[i].Answers) {
			key := keyOf(d)
			differ[key] = 1
			if m.explains(key) == nil {
				problems = append(problems, fmt.Sprintf(
					"%s differs from the emulator: %s; change the emulator, or explain the fact %q in test/machines/%s/%s", m.Name, d, key, m.Name, notesFile))
			}
		}
		problems = append(problems, checkCalls(m, differ)...)
		problems = append(problems, checkNotes(m, differ)...)
	}
	return problems
}

// New returns the facts in which a machine differs from the emulator, and did not before it was replaced, or not
// so. A note may explain them already, which was written before them.
func New(before, after []Machine, name string) (differences []answer.Difference) {
	old := compare(before, name)
	return slices.DeleteFunc(compare(after, name), func(d answer.Difference) bool { return slices.Contains(old, d) })
}

// compare compares a machine with the emulator.
func compare(list []Machine, name string) []answer.Difference {
	named := func(name string) int { return slices.IndexFunc(list, func(m Machine) bool { return m.Name == name }) }
	i, j := named(name), named(emulator)
	if i < 0 || j < 0 {
		return nil
	}
	return answer.Compare(list[i].Answers, list[j].Answers)
}

// longestSystem is how many characters of the name of a system the table shows.
const longestSystem = 120

// Table returns the table of machines, in Markdown. It says so if none of them is real.
func Table(list []Machine) string {
	var b strings.Builder
	b.WriteString("| Machine | System | Questions answered | Cases passed | Recorded calls that differ | Differs from the emulator |\n|---|---|---|---|---|---|\n")
	for _, m := range list {
		about := m.Answers.Machine
		parts := []string{about.System, about.Installation, about.Build, about.Arch}
		if about.Container {
			parts = append(parts, "in a HostProcess container")
		}
		system := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
		passed, failed, skipped := m.Answers.CountCases(trial.Passed), m.Answers.CountCases(trial.Failed), m.Answers.CountCases(trial.Skipped)
		cases := fmt.Sprintf("%d of %d, %d skipped", passed, passed+failed, skipped)
		calls := "-"
		if all, differ := m.compared(); all > 0 {
			calls = fmt.Sprintf("%d of %d", differ, all)
		}
		differs := "no"
		if ids := differing(list, m); len(ids) > 0 {
			differs = strings.Join(ids, ", ")
		}
		fmt.Fprintf(&b, "| [%s](../test/machines/%[1]s) | %s | %d of %d | %s | %s | %s |\n",
			m.Name, cell(brief(system, longestSystem)), m.Answers.Count(answer.Answered), len(question.All()), cases, calls, differs)
	}
	if !slices.ContainsFunc(list, func(m Machine) bool { return m.Answers.Machine.Kind == answer.Windows }) {
		b.WriteString("\n**No real Windows machine is among them.**\n")
	}
	return b.String()
}

// differing returns the questions that a machine answers otherwise than the emulator, each once.
func differing(list []Machine, m Machine) (ids []string) {
	for _, d := range compare(list, m.Name) {
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Page returns all answers as a page, in Markdown. Machines with equal answers share a line.
func Page(list []Machine) string {
	var b strings.Builder
	b.WriteString(`# Answers

What machines answered to the [open questions](testing.md#open-questions). The test of test/machines
writes this page; do not edit it. A question without answers is not on it. Values in parentheses differ
from run to run.
`)
	for _, section := range question.Sections() {
		var rows strings.Builder
		for _, q := range section.Questions {
			for _, row := range rowsOf(list, q.ID) {
				fmt.Fprintf(&rows, "| %s | %s | %s |\n", q.ID, row.machines, row.text)
			}
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n| ID | Machine | Answer |\n|---|---|---|\n%s", section.Title, rows.String())
		}
	}
	if rows := callRows(list); rows != "" {
		fmt.Fprintf(&b, callsHeading, rows)
	}
	return b.String()
}

const callsHeading = `
## Recorded calls

[Recorded calls](testing.md#recordings) that an emulated node of the same description answers otherwise.

| Call | Machine | Differences |
|---|---|---|
%s`

// longestAnswer is how many characters of an answer the page shows. Its file has them all.
const longestAnswer = 2000

type row struct{ machines, text string }

func rowsOf(list []Machine, id string) (rows []row) {
	for _, m := range list {
		a, ok := m.Answers.Find(id)
		if !ok || a.Status == answer.NotAsked {
			continue
		}
		text := a.Text()
		if a.Status == answer.Failed {
			text = strings.TrimPrefix(text+"; asking failed: "+a.Reason, "; ")
		}
		if len(a.Measured) > 0 {
			text = strings.TrimSpace(text + " (" + answer.Texts(a.Measured) + ")")
		}
		text = brief(text, longestAnswer)
		if notes := m.notesOf(id); len(notes) > 0 {
			text += ". " + strings.Join(notes, " ")
		}
		text = cell(text)
		if i := slices.IndexFunc(rows, func(r row) bool { return r.text == text }); i >= 0 {
			rows[i].machines += ", " + m.Name
		} else {
			rows = append(rows, row{m.Name, text})
		}
	}
	return rows
}

// cell makes a text safe for a cell of a table. It comes from a machine that no one here controls: it
// must not become a link, an image, code, a formula or HTML.
func cell(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return cellEscapes.Replace(text)
}

// cellEscapes also breaks what GitHub makes a link or a formula of without brackets. A backslash does not keep
// it from making user@host a link, or formulas of what is between dollars; an element does.
// https://docs.github.com/get-started/writing-on-github/working-with-advanced-formatting/writing-mathematical-expressions
var cellEscapes = strings.NewReplacer("|", `\|`, `\`, `\\`, "<", "&lt;", "*", `\*`, "_", `\_`,
	"[", `\[`, "]", `\]`, "`", "\\`", "~", `\~`, "&", "&amp;", "://", `:\//`, "www.", `www\.`, "WWW.", `WWW\.`,
	"@", "<span>@</span>", "$", "<span>$</span>")
