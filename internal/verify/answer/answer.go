// Package answer holds what a machine answered: the file answers.json of csi-proxy-verify.
package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

// Format is the version of the file.
const Format = 1

// Document is a machine and its answers.
type Document struct {
	Format  int      `json:"format"`
	Program string   `json:"program"` // the version of csi-proxy-verify
	Began   string   `json:"began,omitempty"`
	Machine Machine  `json:"machine"`
	Answers []Answer `json:"answers"` // in the order of the catalogue
	Cases   []Case   `json:"cases"`
}

// Kind is what a machine is.
type Kind string

// The kinds of machines.
const (
	Windows  Kind = "windows"
	Wine     Kind = "wine"
	Emulator Kind = "emulator"
)

// Machine says what was asked. It has no names and no serial numbers.
type Machine struct {
	Kind         Kind   `json:"kind"`
	System       string `json:"system"`                 // such as Windows Server 2022 Datacenter
	Installation string `json:"installation,omitempty"` // such as Server Core; Server is one with a desktop
	Build        string `json:"build,omitempty"`        // such as 10.0.20348.2113
	Arch         string `json:"arch,omitempty"`
	Container    bool   `json:"container,omitempty"` // a HostProcess container
}

// Status says whether there is an answer.
type Status string

// The states of a question.
const (
	Answered Status = "answered"
	NotAsked Status = "not asked"
	// Failed means that asking failed. The facts up to there are kept.
	Failed Status = "failed"
)

// Answer is the answer to one question.
type Answer struct {
	ID     string `json:"id"`
	Status Status `json:"status"`
	// Reason is why it was not asked, or what failed.
	Reason string `json:"reason,omitempty"`
	// Facts are the answer. Equal machines have equal facts.
	Facts []Fact `json:"facts,omitempty"`
	// Measured are values that differ from run to run, such as milliseconds.
	Measured []Fact `json:"measured,omitempty"`
	// Evidence is what was seen on the way.
	Evidence []string `json:"evidence,omitempty"`
}

// Fact is a value with its name.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (f Fact) String() string { return f.Name + ": " + f.Value }

// Case is the result of one case of the conformance suite or of the tests of the leaves.
type Case struct {
	Suite   string        `json:"suite"`
	Name    string        `json:"name"`
	Outcome trial.Outcome `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
	Log     []string      `json:"log,omitempty"`
}

// Text returns the facts as one text.
func (a Answer) Text() string { return Texts(a.Facts) }

// Texts returns facts as one text.
func Texts(facts []Fact) string {
	texts := make([]string, len(facts))
	for i, fact := range facts {
		texts[i] = fact.String()
	}
	return strings.Join(texts, "; ")
}

// Find returns the answer to a question.
func (d Document) Find(id string) (Answer, bool) {
	i := slices.IndexFunc(d.Answers, func(a Answer) bool { return a.ID == id })
	if i < 0 {
		return Answer{}, false
	}
	return d.Answers[i], true
}

// Count returns how many questions have a status.
func (d Document) Count(status Status) (n int) {
	for _, a := range d.Answers {
		if a.Status == status {
			n++
		}
	}
	return n
}

// CountCases returns how many cases ended in a way.
func (d Document) CountCases(outcome trial.Outcome) (n int) {
	for _, c := range d.Cases {
		if c.Outcome == outcome {
			n++
		}
	}
	return n
}

// maxDocument is the largest file that is read.
const maxDocument = 16 << 20

// Parse reads a file, and refuses what csi-proxy-verify does not write.
func Parse(content []byte) (Document, error) {
	var d Document
	if len(content) > maxDocument {
		return d, fmt.Errorf("read answers: %d bytes are too many; csi-proxy-verify writes less", len(content))
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, fmt.Errorf("read answers: %w", err)
	}
	if d.Format != Format {
		return d, fmt.Errorf("read answers: the format is %d, and this program reads %d; use the csi-proxy-verify of this version", d.Format, Format)
	}
	if !slices.Contains([]Kind{Windows, Wine, Emulator}, d.Machine.Kind) {
		return d, fmt.Errorf("read answers: %q is not a kind of machine", d.Machine.Kind)
	}
	seen := map[string]bool{}
	for _, a := range d.Answers {
		if seen[a.ID] {
			return d, fmt.Errorf("read answers: %s is there twice", a.ID)
		}
		if err := a.check(); err != nil {
			return d, fmt.Errorf("read answers: %w", err)
		}
		seen[a.ID] = true
	}
	return d, nil
}

// check fails for an answer that csi-proxy-verify does not give: it counts as one in the tables.
func (a Answer) check() error {
	q, known := question.Find(a.ID)
	switch {
	case !known:
		return fmt.Errorf("%q is not a question", a.ID)
	case !slices.Contains([]Status{Answered, NotAsked, Failed}, a.Status):
		return fmt.Errorf("%s has the status %q", a.ID, a.Status)
	case q.NotAsked != "" && a.Status != NotAsked:
		return fmt.Errorf("%s is %s, but csi-proxy-verify does not ask it: %s", a.ID, a.Status, q.NotAsked)
	case a.Status == Answered && a.Empty():
		return fmt.Errorf("%s is answered without an answer", a.ID)
	case slices.ContainsFunc(slices.Concat(a.Facts, a.Measured), func(f Fact) bool { return f.Name == "" }):
		return fmt.Errorf("%s has a value without a name", a.ID)
	}
	return nil
}

// Empty reports whether the answer has no value.
func (a Answer) Empty() bool { return len(a.Facts) == 0 && len(a.Measured) == 0 }

// Marshal returns the document as the file has it.
func (d Document) Marshal() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return b.Bytes(), err
}

// Difference is a fact that two machines see differently.
type Difference struct {
	ID, Fact  string
	Got, Want string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s, %s: %s, not %s", d.ID, d.Fact, d.Got, d.Want)
}

// nothing is the value of a fact that a machine does not have.
const nothing = "nothing"

// Compare returns the facts that machines see differently. If both have answered a question, one that only one
// of them has is such a fact: probes name facts by what happened. A question that failed has fewer facts.
func Compare(got, want Document) []Difference {
	var differences []Difference
	for _, a := range got.Answers {
		b, ok := want.Find(a.ID)
		if !ok || a.Status == NotAsked || b.Status == NotAsked {
			continue
		}
		complete := a.Status == Answered && b.Status == Answered
		for _, name := range names(a.Facts, b.Facts) {
			x, y := values(a.Facts, name), values(b.Facts, name)
			if slices.Equal(x, y) || !complete && (x == nil || y == nil) {
				continue
			}
			differences = append(differences, Difference{a.ID, name, joined(x), joined(y)})
		}
		if a.Status == Failed {
			differences = append(differences, Difference{a.ID, "asking", "failed: " + a.Reason, "an answer"})
		}
	}
	return differences
}

// names returns the names of facts, each once.
func names(lists ...[]Fact) (names []string) {
	for _, fact := range slices.Concat(lists...) {
		if !slices.Contains(names, fact.Name) {
			names = append(names, fact.Name)
		}
	}
	return names
}

// values returns the values of the facts with a name: a directory has many entries.
func values(facts []Fact, name string) (values []string) {
	for _, fact := range facts {
		if fact.Name == name {
			values = append(values, fact.Value)
		}
	}
	return values
}

func joined(values []string) string {
	if values == nil {
		return nothing
	}
	return strings.Join(values, ", ")
}
