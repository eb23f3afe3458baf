package answer

import (
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

// Report returns the document for people, in Markdown.
func (d Document) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# csi-proxy-verify on %s\n\n", d.Machine.System)
	for _, line := range []struct{ name, value string }{
		{"Installation", d.Machine.Installation}, {"Build", d.Machine.Build}, {"Architecture", d.Machine.Arch}, {"Program", d.Program}, {"Began", d.Began},
	} {
		if line.value != "" {
			fmt.Fprintf(&b, "- %s: %s\n", line.name, line.value)
		}
	}
	if d.Machine.Container {
		b.WriteString("- In a HostProcess container\n")
	}
	fmt.Fprintf(&b, "- Questions: %d answered, %d failed, %d not asked\n", d.Count(Answered), d.Count(Failed), d.Count(NotAsked))
	fmt.Fprintf(&b, "- Cases: %d passed, %d failed, %d skipped\n", d.CountCases(trial.Passed), d.CountCases(trial.Failed), d.CountCases(trial.Skipped))
	for _, status := range []Status{Answered, Failed, NotAsked} {
		if d.Count(status) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", map[Status]string{Answered: "Answers", Failed: "Failed", NotAsked: "Not asked"}[status])
		for _, a := range d.Answers {
			if a.Status == status {
				b.WriteString(a.report())
			}
		}
	}
	b.WriteString("\n## Cases\n\n")
	for _, c := range d.Cases {
		fmt.Fprintf(&b, "- %s: %s/%s", c.Outcome, c.Suite, c.Name)
		if c.Reason != "" {
			fmt.Fprintf(&b, ": %s", c.Reason)
		}
		b.WriteString("\n")
		for _, line := range c.Log {
			fmt.Fprintf(&b, "    - %s\n", strings.ReplaceAll(line, "\n", "\n      "))
		}
	}
	return b.String()
}

func (a Answer) report() string {
	var b strings.Builder
	q, _ := question.Find(a.ID)
	if a.Status == NotAsked {
		return fmt.Sprintf("- %s: %s\n", a.ID, a.Reason)
	}
	fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", a.ID, q.Question)
	if q.Expected != "" {
		fmt.Fprintf(&b, "Expected: %s\n\n", q.Expected)
	}
	if a.Reason != "" {
		fmt.Fprintf(&b, "- failed: %s\n", a.Reason)
	}
	for _, fact := range a.Facts {
		fmt.Fprintf(&b, "- %s\n", fact)
	}
	for _, fact := range a.Measured {
		fmt.Fprintf(&b, "- measured: %s\n", fact)
	}
	for _, line := range a.Evidence {
		fmt.Fprintf(&b, "- seen: %s\n", strings.ReplaceAll(line, "\n", "\n  "))
	}
	return b.String()
}
