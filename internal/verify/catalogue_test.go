package verify

import (
	"context"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

// TestSettle: a question that was not asked says why.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		ended   bool
		options Options
		id      string
		want    string
	}{
		"never asked":        {false, Options{}, "Q-events", "needs the daemon as an installed service"},
		"another was wanted": {false, Options{Only: []string{"Q-case"}}, "Q-msr", "the operator asked for other questions"},
		"without suites":     {false, Options{}, "Q-symlink", "the conformance suite was not run"},
		"interrupted":        {true, Options{Suites: true}, "Q-symlink", "the run was interrupted"},
		"no answer":          {false, Options{Suites: true}, "Q-msr", "this machine cannot tell"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if c.ended {
			cancel()
		}
		q, _ := question.Find(c.id)
		if a := (&run{options: c.options}).settle(ctx, q); a.ID != c.id || a.Status != answer.NotAsked || a.Reason != c.want {
			t.Errorf("%s: %+v, want %q", name, a, c.want)
		}
	}
}

// TestKeep: a question without a value is not answered.
func TestKeep(t *testing.T) {
	fact := []answer.Fact{{Name: "x", Value: ""}}
	for want, a := range map[answer.Status]answer.Answer{
		answer.NotAsked: {ID: "Q-location-property", Status: answer.Answered},
		answer.Answered: {ID: "Q-location-property", Status: answer.Answered, Measured: fact},
		answer.Failed:   {ID: "Q-location-property", Status: answer.Failed},
	} {
		r := &run{answers: map[string]answer.Answer{}}
		r.keep(a)
		if got := r.answers[a.ID]; got.Status != want || (want == answer.NotAsked) != (got.Reason == cannotTell) {
			t.Errorf("%+v is kept as %+v, want %s", a, got, want)
		}
	}
}

// TestCatalogue checks that each question is asked by exactly one group or by cases, or says why not.
func TestCatalogue(t *testing.T) {
	asked := []string{"Q-vhdx", "Q-pipe-tests"}
	for id := range shown {
		asked = append(asked, id)
	}
	for _, g := range groups {
		asked = append(asked, g.ids...)
	}
	for _, q := range question.All() {
		n := 0
		for _, id := range asked {
			if id == q.ID {
				n++
			}
		}
		switch {
		case n == 0 && q.NotAsked == "":
			t.Errorf("%s is not asked, and does not say why", q.ID)
		case n == 1 && q.NotAsked != "":
			t.Errorf("%s is asked, but says that it is not: %s", q.ID, q.NotAsked)
		case n > 1:
			t.Errorf("%s is asked %d times", q.ID, n)
		}
	}
	for _, id := range asked {
		if !slices.ContainsFunc(question.All(), func(q question.Question) bool { return q.ID == id }) {
			t.Errorf("%s is asked, but not in the catalogue", id)
		}
	}
}
