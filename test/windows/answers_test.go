package windows_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
)

// line is a line of answers.jsonl. Facts are equal on equal machines; measured values differ from run to run.
type line struct {
	Machine  string `json:"machine,omitempty"`
	Program  string `json:"program,omitempty"`
	Service  bool   `json:"service,omitempty"` // asked inside a service that has the privileges of csi-proxy.exe
	Question string `json:"question,omitempty"`
	Fact     string `json:"fact,omitempty"`
	Measured string `json:"measured,omitempty"`
	Value    string `json:"value,omitempty"`
	Skipped  string `json:"skipped,omitempty"` // the reason
	Failed   string `json:"failed,omitempty"`  // the test; the log has the reason
}

// answerFile is answers.jsonl, or nothing.
type answerFile struct {
	mu   sync.Mutex
	file *os.File // nil: there is none
}

var answers = &answerFile{}

// openAnswers makes the file, if one is wanted. Only what is found after a restart is added to one that exists.
func openAnswers(o options) (*answerFile, error) {
	if o.answers == "" {
		return &answerFile{}, nil
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if o.afterRestart {
		mode = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	file, err := os.OpenFile(o.answers, mode, 0o600)
	if err != nil {
		return nil, fmt.Errorf("-answers: %w; name a new file in a folder that exists", err)
	}
	return &answerFile{file: file}, nil
}

func (f *answerFile) write(l line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil { // there is none, or the run has ended
		return
	}
	encoder := json.NewEncoder(f.file)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		fmt.Fprintln(os.Stderr, "csi-proxy-verify: an answer is lost:", err)
	}
}

func (f *answerFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file != nil {
		_ = f.file.Close()
	}
	f.file = nil
}

// discard removes the file of a run that cannot begin, unless it has answers of one before.
func (f *answerFile) discard(o options) {
	f.close()
	if info, err := os.Stat(o.answers); err == nil && info.Size() == 0 {
		_ = os.Remove(o.answers)
	}
}

// answer is a question that is being asked.
type answer struct {
	*testing.T
	question string
}

// fact adds a fact.
func (a *answer) fact(name string, value any) {
	a.Helper()
	a.Logf("%s: %s", name, text(value))
	answers.write(line{Question: a.question, Fact: name, Value: text(value)})
}

// measured adds a value that differs from run to run.
func (a *answer) measured(name string, value any) {
	a.Helper()
	a.Logf("%s: %s (measured)", name, text(value))
	answers.write(line{Question: a.question, Measured: name, Value: text(value)})
}

// must ends the question if err is one.
func (a *answer) must(err error) {
	a.Helper()
	mustFor(a.T, a.question, err)
}

// ask asks one question of a group. Whatever happens to it, the next one can be asked.
func (g *group) ask(id string, do func(*answer)) {
	g.Helper()
	g.Run(id, func(t *testing.T) { do(begin(t, id)) })
}

// begin begins a question.
func begin(t *testing.T, id string) *answer {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			answers.write(line{Question: id, Failed: t.Name()})
		}
	})
	return &answer{t, id}
}

// Skip ends the question, or the group, with a reason.
func (a *answer) Skip(args ...any) {
	a.Helper()
	skip(a.T, a.question, fmt.Sprint(args...))
}

// Skipf is Skip with a format.
func (a *answer) Skipf(format string, args ...any) {
	a.Helper()
	skip(a.T, a.question, fmt.Sprintf(format, args...))
}

func skip(t *testing.T, question, reason string) {
	t.Helper()
	answers.write(line{Question: question, Skipped: reason})
	t.Skip(reason)
}

// cannotError is why a machine cannot be asked something. It is not a failure.
type cannotError struct{ reason string }

func (c cannotError) Error() string { return c.reason }

func cannotf(format string, args ...any) error { return cannotError{fmt.Sprintf(format, args...)} }

// must ends the test if err is one. A cannotError skips it.
func must(t *testing.T, err error) {
	t.Helper()
	mustFor(t, t.Name(), err)
}

func mustFor(t *testing.T, question string, err error) {
	t.Helper()
	skipIfCannot(t, question, err)
	require.NoError(t, err)
}

// skipIfCannot ends the test if err is why the machine cannot be asked.
func skipIfCannot(t *testing.T, question string, err error) {
	t.Helper()
	if cannot, ok := errors.AsType[cannotError](err); ok {
		skip(t, question, cannot.reason)
	}
}
