package trial_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"
)

var _ trial.T = (*testing.T)(nil)

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(trial.T)
		want   trial.Outcome
		reason string
	}{
		"a case that returns":    {func(t trial.T) { t.Log("fine") }, trial.Passed, ""},
		"an error":               {func(t trial.T) { t.Errorf("wrong %d\nmore", 1); t.Error("later") }, trial.Failed, "wrong 1"},
		"a fatal error":          {func(t trial.T) { t.Fatal("stop"); panic("not reached") }, trial.Failed, "stop"},
		"a skipped case":         {func(t trial.T) { t.Skipf("no %s", "disk"); panic("not reached") }, trial.Skipped, "no disk"},
		"a skip after a failure": {func(t trial.T) { t.Error("wrong"); t.Skip("no disk") }, trial.Failed, "wrong"},
		"a panic":                {func(trial.T) { panic("ouch") }, trial.Failed, "panic: ouch"},
		"a panic in a cleanup":   {func(t trial.T) { t.Cleanup(func() { panic("ouch") }) }, trial.Failed, "panic: ouch"},
	} {
		t.Run(name, func(t *testing.T) {
			undone := false
			r := trial.Run(t.Context(), name, t.TempDir(), time.Minute, func(t trial.T) {
				t.Cleanup(func() { undone = true })
				c.do(t)
			})
			if r.Outcome != c.want || r.Reason != c.reason {
				t.Errorf("got %q, want %s because of %q", r, c.want, c.reason)
			}
			if !undone {
				t.Error("the cleanup did not run")
			}
		})
	}
}

func TestRun_CleansUpInReverse(t *testing.T) {
	var order []string
	dir := ""
	trial.Run(t.Context(), "case", t.TempDir(), time.Minute, func(t trial.T) {
		dir = t.TempDir()
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() { order = append(order, "second") })
	})
	if want := []string{"second", "first"}; !slices.Equal(order, want) {
		t.Errorf("the cleanups ran as %q, want %q", order, want)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestRun_EndsTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := trial.Run(ctx, "case", t.TempDir(), time.Minute, func(t trial.T) {
		<-t.Context().Done()
		t.Fatal(t.Context().Err())
	})
	if !strings.Contains(r.Reason, "canceled") {
		t.Errorf("got %q", r)
	}
}
