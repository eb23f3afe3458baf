package verify

import (
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/question"
)

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
