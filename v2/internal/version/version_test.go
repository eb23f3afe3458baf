package version

import "testing"

func TestFull(t *testing.T) {
	stamp := func(v, c, d string) { stamped, commit, date = v, c, d }
	before := [...]string{stamped, commit, date}
	t.Cleanup(func() { stamp(before[0], before[1], before[2]) })

	stamp("v2.0.0", "1f94e68", "2026-11-15T08:00:00Z")
	if got, want := Full(), "v2.0.0 (commit 1f94e68, 2026-11-15T08:00:00Z)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	stamp("v2.0.0", "", "")
	if got := Full(); got != "v2.0.0" {
		t.Errorf("without a commit it is %q", got)
	}
	stamp("", "", "")
	if got := Full(); got == "" || got != String() {
		t.Errorf("without a stamp it is %q", got)
	}
}
