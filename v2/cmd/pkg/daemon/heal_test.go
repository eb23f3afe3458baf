package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// looks is a healer that returns one result after the other, and then nothing stale.
type looks struct {
	results []func() (*node.Healing, error)
	made    int
}

func (l *looks) Heal(context.Context, node.HealOptions) (*node.Healing, error) {
	l.made++
	if l.made > len(l.results) {
		return &node.Healing{}, nil
	}
	return l.results[l.made-1]()
}

// TestHealAtStart: a look that fails, cannot see everything or keeps a link is repeated, a few times.
func TestHealAtStart(t *testing.T) {
	fails := func() (*node.Healing, error) { return nil, errors.New("no answer") }
	blind := func() (*node.Healing, error) {
		return &node.Healing{Problems: []node.Problem{{Text: "not ready"}}}, nil
	}
	kept := func() (*node.Healing, error) {
		return &node.Healing{Stale: []node.StaleMount{{Path: "x", State: node.Kept}}}, nil
	}
	removed := func() (*node.Healing, error) {
		return &node.Healing{Stale: []node.StaleMount{{Path: "x", State: node.Removed}}}, nil
	}
	panics := func() (*node.Healing, error) { panic("a mistake") }
	for name, c := range map[string]struct {
		results []func() (*node.Healing, error)
		want    int
	}{
		"nothing":    {nil, 1},
		"removed":    {[]func() (*node.Healing, error){removed}, 1},
		"in trouble": {[]func() (*node.Healing, error){fails, blind, kept, panics}, 5},
		"for ever":   {[]func() (*node.Healing, error){kept, kept, kept, kept, kept, kept, kept, kept}, healRounds},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := &looks{results: c.results}
			healAtStart(t.Context(), l, HealReport)
			if l.made != c.want {
				t.Errorf("%s: %d looks, want %d", name, l.made, c.want)
			}
		})
	}
}

// TestRepeat: the daemon looks after each pause, also after a look that failed or has a bug.
func TestRepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		made, began := 0, time.Now()
		repeat(ctx, "look", time.Minute, func(context.Context) error {
			made++
			switch made {
			case 1:
				return errors.New("no answer")
			case 2:
				panic("a mistake")
			}
			cancel()
			return nil
		})
		if took := time.Since(began); made != 3 || took != 3*time.Minute {
			t.Errorf("%d looks in %v", made, took)
		}
	})
}
