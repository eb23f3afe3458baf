package node

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var update = flag.Bool("update", false, "rewrite the table of decisions in the manual")

var (
	allTargets   = []target{toVolume, toShare}
	allStatuses  = []listStatus{unknown, listed, broken, unlisted}
	allOpenings  = []opening{opens, missing, noShare, refused, denied, unclear}
	allReadiness = []readiness{allReady, notReady}
	allOrigins   = []origin{beforeStart, sinceStart}
)

func everyCheck(targets []target, statuses []listStatus, openings []opening, readiness []readiness, origins []origin, each func(linkCheck)) {
	for _, t := range targets {
		for _, l := range statuses {
			for _, o := range openings {
				for _, d := range readiness {
					for _, from := range origins {
						each(linkCheck{t, l, o, d, from})
					}
				}
			}
		}
	}
}

// TestHealRules_Complete: each check matches exactly one rule, and each rule some check.
func TestHealRules_Complete(t *testing.T) {
	used := make([]bool, len(rules))
	everyCheck(allTargets, allStatuses, allOpenings, allReadiness, allOrigins, func(s linkCheck) {
		var matching []int
		for i, r := range rules {
			if r.matches(s) {
				matching = append(matching, i)
				used[i] = true
			}
		}
		if len(matching) != 1 {
			t.Errorf("%+v: the rules %v match, want exactly one", s, matching)
		}
	})
	if i := slices.Index(used, false); i >= 0 {
		t.Errorf("rule %d matches nothing", i)
	}
}

// TestHealDecide pins every check. Only these kinds are gone, and only what opens is live.
func TestHealDecide(t *testing.T) {
	everyCheck(allTargets, allStatuses, allOpenings, allReadiness, allOrigins, func(s linkCheck) {
		want := keep
		switch {
		case s.opening == opens:
			want = live
		case s.target == toVolume && s.status == unlisted && s.opening == missing && s.ready == allReady:
			want = remove
		case s.target == toShare && (s.status == broken || s.status == unlisted) && s.origin == beforeStart &&
			(s.opening == missing || s.opening == noShare || s.opening == refused || s.opening == denied && s.status == broken):
			want = remove
		}
		if got := decide(s); got.verdict != want || got.why == "" {
			t.Errorf("%+v: %+v, want %v", s, got, want)
		}
	})
}

// TestOpeningOf: only answers of a volume or server count, each code as one.
func TestOpeningOf(t *testing.T) {
	for _, c := range []struct {
		target target
		code   winerr.Code
		want   opening
	}{
		{toVolume, 0, opens},
		{toVolume, winerr.FileNotFound, missing},
		{toVolume, winerr.NotReady, unclear},
		{toVolume, winerr.UnrecognizedVolume, unclear},
		{toVolume, winerr.LogonFailure, unclear},
		{toShare, 0, opens},
		{toShare, winerr.PathNotFound, missing},
		{toShare, winerr.BadNetName, noShare},
		{toShare, winerr.LogonFailure, refused},
		{toShare, winerr.CredentialConflict, refused},
		{toVolume, winerr.AccessDenied, unclear},
		{toShare, winerr.AccessDenied, denied},
		{toShare, winerr.BadNetPath, unclear},
		{toShare, winerr.NetnameDeleted, unclear},
		{toShare, winerr.AccountLockedOut, unclear},
	} {
		var err error
		if c.code != 0 {
			err = c.code
		}
		if got := openingOf(c.target, err); got != c.want {
			t.Errorf("%v with %d: %v, want %v", c.target, c.code, got, c.want)
		}
	}
}

// TestManual compares the table in the manual with the one that decides.
func TestManual(t *testing.T) {
	const (
		manual = "../../docs/operations.md"
		begin  = "<!-- decisions, printed by go test ./pkg/node -run TestManual -update -->\n"
		end    = "<!-- end of decisions -->\n"
	)
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	was, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the lines\n%s%s", manual, begin, end)
	}
	want := "\n" + decisionTable() + "\n"
	switch {
	case was == want:
	case *update:
		if err := os.WriteFile(manual, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is out of date; run this test with -update", manual)
	}
}

// decisionTable is the table as the manual shows it.
func decisionTable() string {
	var b strings.Builder
	b.WriteString("| The link leads to a | Windows lists it | Opening it says | Something else is not ready | Used since Windows started | Decision | Why |\n|---|---|---|---|---|---|---|\n")
	for _, r := range rules {
		openings := join(r.openings)
		if slices.Equal(r.openings, notOpen) {
			openings = "anything else than that it opens"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | **%s** | %s |\n",
			join(r.targets), join(r.statuses), openings, join(r.readiness), join(r.origins), r.verdict, r.why)
	}
	return b.String()
}

func join[T fmt.Stringer](list []T) string {
	if list == nil {
		return "any"
	}
	var names []string
	for _, value := range list {
		names = append(names, value.String())
	}
	return strings.Join(names, " or ")
}
