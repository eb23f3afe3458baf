package original

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/test/drivers/report"
)

// expectation is a test that fails for a reason that is not a defect of ours.
type expectation struct{ suite, test string }

// parseExpected reads expected.txt: lines of a suite, a test and after a colon the reason.
func parseExpected(text string) (map[expectation]string, error) {
	reasons := map[expectation]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		object, reason, found := strings.Cut(line, ": ")
		suite, test, both := strings.Cut(object, " ")
		if !found || !both || reasons[expectation{suite, test}] != "" {
			return nil, fmt.Errorf("expected.txt, line %d: %q is not \"suite test: reason\", or is there twice", i+1, line)
		}
		reasons[expectation{suite, test}] = reason
	}
	return reasons, nil
}

// judge returns what differs from the expectation: too few tests, tests that fail or skip without a
// reason, and reasons of tests that pass or do not exist.
func (s Suite) judge(results []Result, reasons map[expectation]string) []string {
	var problems []string
	tests := 0
	left := map[string]string{}
	for e, reason := range reasons {
		if e.suite == s.Name {
			left[e.test] = reason
		}
	}
	for _, r := range results {
		if !r.parent {
			tests++
		}
		reason, listed := left[r.Test]
		delete(left, r.Test)
		switch {
		case r.Action == "pass" && listed:
			problems = append(problems, fmt.Sprintf("%s passes; remove it from expected.txt, which says: %s", r.Test, reason))
		case r.Action != "pass" && !listed:
			problems = append(problems, fmt.Sprintf("%s: %s\n%s", r.Test, r.Action, r.Output))
		}
	}
	for test, reason := range left {
		problems = append(problems, fmt.Sprintf("%s does not exist, or does not fail by itself; remove it from expected.txt, which says: %s", test, reason))
	}
	if tests != s.Tests {
		problems = append(problems, fmt.Sprintf("%d tests ran, want %d", tests, s.Tests))
	}
	return problems
}

// tables are the results in docs/drivers.md: a summary, and every test.
type tables struct{ summary, tests report.Table }

func newTables() *tables {
	return &tables{
		summary: report.Table{Header: []string{"Suite", "Module", "Tests", "Pass"}},
		tests:   report.Table{Header: []string{"Suite", "Test", "Result"}},
	}
}

func (t *tables) add(s Suite, results []Result, reasons map[expectation]string) {
	count, pass := 0, 0
	for _, r := range results {
		result := r.Action
		if reason := reasons[expectation{s.Name, r.Test}]; reason != "" {
			result += ": " + reason
		}
		t.tests.Add(s.Name, "`"+r.Test+"`", result)
		if r.parent {
			continue
		}
		count++
		if r.Action == "pass" {
			pass++
		}
	}
	t.summary.Add(s.Name, "`"+s.Module.String()+"`", strconv.Itoa(count), strconv.Itoa(pass))
}

func (t *tables) String() string { return t.summary.String() + "\n" + t.tests.String() }
