//go:build linux

package suite

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// result is what a test binary says, in short.
type result struct {
	passed, failed, skipped int
	inOrder                 []string // the tests that passed
	reasons                 []string // for skipping, each once
	figures                 []string // what tests have measured
}

var (
	begun  = regexp.MustCompile(`^=== (?:RUN|CONT|NAME) +(.+)$`)
	ended  = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (.+) \(.*\)$`)
	logged = regexp.MustCompile(`^ *[\w.-]+\.go:\d+: (.*)$`)
)

// parse reads the output of a test binary with -test.v. What a test logs follows its name; its
// end comes with that of its parent. Tests with sub-tests count as one more.
func parse(output string) (r result) {
	name, last := "", map[string]string{}
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		if begin := begun.FindStringSubmatch(line); begin != nil {
			name = begin[1]
		} else if text := logged.FindStringSubmatch(line); text != nil {
			last[name] = text[1]
			if figure, found := strings.CutPrefix(text[1], "figure: "); found {
				r.figures = append(r.figures, figure)
			}
		} else if end := ended.FindStringSubmatch(line); end != nil {
			r.count(end[1], end[2], last[end[2]])
		}
	}
	return r
}

func (r *result) count(outcome, name, reason string) {
	switch outcome {
	case "PASS":
		r.passed++
		r.inOrder = append(r.inOrder, name)
	case "FAIL":
		r.failed++
	case "SKIP":
		r.skipped++
		if !slices.Contains(r.reasons, reason) {
			r.reasons = append(r.reasons, reason)
		}
	}
}

// wantPassed complains of tests that did not pass: skipped ones are not enough.
func (r result) wantPassed(t *testing.T, tests ...string) {
	t.Helper()
	for _, test := range tests {
		if !slices.Contains(r.inOrder, test) {
			t.Errorf("%s has not passed, although this Wine has what it needs", test)
		}
	}
}

func (r result) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d passed", r.passed)
	if r.failed > 0 {
		fmt.Fprintf(&text, ", %d FAILED", r.failed)
	}
	if r.skipped > 0 {
		fmt.Fprintf(&text, ", %d skipped", r.skipped)
	}
	return text.String()
}

// details are the reasons for skipping, and what was measured, with a line for each.
func (r result) details() string {
	var text strings.Builder
	for _, reason := range r.reasons {
		fmt.Fprintf(&text, "\nskipped: %.150s", reason)
	}
	for _, figure := range r.figures {
		text.WriteString("\n" + figure)
	}
	return text.String()
}

// brief is an output without what is in order.
func brief(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if text := strings.TrimSpace(line); !strings.HasPrefix(text, "=== ") && !strings.HasPrefix(text, "--- PASS") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
