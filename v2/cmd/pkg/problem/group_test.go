package problem

import "testing"

// TestJoin: what History has kept of a problem does not change when another one joins it.
func TestJoin(t *testing.T) {
	kept := Problem{Pods: append(make([]string, 0, 8), "b", "c", "d")}
	whole := kept
	whole.join(Problem{Object: Object{ID: "a"}, Pods: []string{"a"}})
	if kept.Pods[0] != "b" || len(whole.Pods) != 4 {
		t.Errorf("%q, joined %q", kept.Pods, whole.Pods)
	}
}
