package tasks_test

import (
	"sync"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
)

// check compares all counts of the kind "read".
func check(t *testing.T, c *tasks.Calls[string], when string, abandoned int64, stuckCalls, calls, objects int) {
	t.Helper()
	gotCalls, gotObjects := c.Count("read")
	if c.Abandoned() != abandoned || c.Stuck() != stuckCalls || gotCalls != calls || gotObjects != objects {
		t.Errorf("%s: %d abandoned, %d stuck, of which %d reads on %d objects; want %d, %d, %d, %d",
			when, c.Abandoned(), c.Stuck(), gotCalls, gotObjects, abandoned, stuckCalls, calls, objects)
	}
}

func TestCalls_CountsWhatIsAbandoned(t *testing.T) {
	var c tasks.Calls[string]
	first, second := c.Begin("read", "disk 1"), c.Begin("read", "disk 1")
	other, flush := c.Begin("read", "disk 2"), c.Begin("flush", "disk 1")
	check(t, &c, "before a caller leaves", 0, 0, 0, 0)
	for _, call := range []*tasks.Call[string]{first, second, other, flush} {
		if !call.Abandon() {
			t.Error("a call that runs was not abandoned")
		}
	}
	check(t, &c, "with four that hang", 4, 4, 3, 2)
	if c.On("read", "disk 1") != first || c.On("flush", "disk 1") != flush || c.On("flush", "disk 2") != nil {
		t.Error("On returns a call of another kind or object")
	}

	if first.Return() {
		t.Error("an abandoned call has a caller that waits")
	}
	check(t, &c, "when one has returned, before its goroutine ends", 4, 4, 3, 2)
	first.End()
	if c.On("read", "disk 1") != second {
		t.Error("the second call on the object is gone with the first")
	}
	check(t, &c, "after one", 4, 3, 2, 2)
	second.End()
	flush.End()
	check(t, &c, "after three", 4, 1, 1, 1)
	other.End()
	check(t, &c, "after all", 4, 0, 0, 0)
	<-other.Done()
}

func TestCalls_ReturnedIsNotAbandoned(t *testing.T) {
	var c tasks.Calls[string]
	call := c.Begin("read", "disk 1")
	if !call.Return() || call.Abandon() {
		t.Error("a call that has returned was abandoned")
	}
	call.End()
	<-call.Done()
	check(t, &c, "after it", 0, 0, 0, 0)
}

// TestCalls_Race: a call that returns while its caller leaves is either returned or counted.
func TestCalls_Race(t *testing.T) {
	var c tasks.Calls[string]
	for range 1000 {
		call := c.Begin("read", "disk 1")
		var left, attended bool
		var both sync.WaitGroup
		both.Go(func() { left = call.Abandon() })
		both.Go(func() { attended = call.Return() })
		both.Wait()
		if left == attended {
			t.Fatalf("abandoned: %v, the caller still waits: %v", left, attended)
		}
		call.End()
	}
	if n := c.Stuck(); n != 0 {
		t.Errorf("%d are stuck", n)
	}
}
