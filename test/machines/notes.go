package machines

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
)

// Note says why a machine and the emulator differ. It explains what it names, and nothing that comes later.
type Note struct {
	Text string `json:"note"`
	// Facts are those that differ, such as "Q-root-access/set a label".
	Facts []string `json:"facts,omitempty"`
	// Calls are how many answers of recorded calls differ, by their methods.
	Calls map[string]int `json:"calls,omitempty"`
}

// callKey begins what a method is known by beside facts.
const callKey = "call "

func keyOf(d answer.Difference) string { return d.ID + "/" + d.Fact }

// keys returns what the note explains, and how often that differs.
func (n Note) keys() map[string]int {
	keys := map[string]int{}
	for _, fact := range n.Facts {
		keys[fact] = 1
	}
	for method, number := range n.Calls {
		keys[callKey+method] = number
	}
	return keys
}

// explains returns the note about a fact or a call, if there is one.
func (m Machine) explains(key string) *Note {
	for i, n := range m.Notes {
		if _, ok := n.keys()[key]; ok {
			return &m.Notes[i]
		}
	}
	return nil
}

// notesOf returns the notes about a question.
func (m Machine) notesOf(id string) (texts []string) {
	for _, n := range m.Notes {
		if slices.ContainsFunc(n.Facts, func(fact string) bool { return strings.HasPrefix(fact, id+"/") }) {
			texts = append(texts, n.Text)
		}
	}
	return texts
}

// checkNotes returns a sentence for each note that says nothing, and for what it explains and does not differ, or
// not so often. differ is what differs, and how often.
func checkNotes(m Machine, differ map[string]int) (problems []string) {
	seen := map[string]bool{}
	for _, n := range m.Notes {
		if strings.TrimSpace(n.Text) == "" || len(n.keys()) == 0 {
			problems = append(problems, fmt.Sprintf("test/machines/%s/%s has a note without a text, or without what it explains: %+v", m.Name, notesFile, n))
		}
		keys := n.keys()
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			problem := ""
			switch number := differ[key]; {
			case seen[key]:
				problem = "twice; leave one"
			case number == 0:
				problem = "which does not differ from the emulator; remove it"
			case number != keys[key]:
				problem = fmt.Sprintf("for %d answers, and %d differ; look at them all with csi-proxy-sim replay", keys[key], number)
			}
			if problem != "" {
				problems = append(problems, fmt.Sprintf("test/machines/%s/%s explains %s, %s", m.Name, notesFile, key, problem))
			}
			seen[key] = true
		}
	}
	return problems
}
