//go:build unix

package soak

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// tally counts what happened, so that a quiet run shows.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func newTally() *tally { return &tally{counts: map[string]int{}} }

func (t *tally) add(what string, count int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what] += count
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(t.counts)) {
		fmt.Fprintf(&b, "\n%9d  %s", t.counts[what], what)
	}
	return b.String()
}
