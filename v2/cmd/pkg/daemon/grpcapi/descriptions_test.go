package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// slowInspector numbers its descriptions, each of which takes a second.
type slowInspector struct {
	Inspector
	mu       sync.Mutex
	begun    int
	canceled int
}

func (i *slowInspector) Describe(ctx context.Context, _ ...node.Part) (*node.Description, error) {
	i.mu.Lock()
	i.begun++
	n := i.begun
	i.mu.Unlock()
	select {
	case <-time.After(time.Second):
		return &node.Description{Problems: []node.Problem{{Text: fmt.Sprint(n)}}}, nil
	case <-ctx.Done():
		i.mu.Lock()
		defer i.mu.Unlock()
		i.canceled++
		return nil, ctx.Err()
	}
}

// begun waits until a description has begun, if it was asked for.
func begun() {
	synctest.Wait()
	time.Sleep(gather)
	synctest.Wait()
}

// TestDescriptions: callers that ask at once share a description, which begins after they have asked.
func TestDescriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inspector := &slowInspector{}
		s := newDescriptions(inspector, nil)
		var wg sync.WaitGroup
		ask := func(want string, parts ...node.Part) {
			wg.Go(func() {
				if got, err := s.describe(t.Context(), parts...); err != nil || got.Problems[0].GetText() != want {
					t.Errorf("%v, %v, want description %s", got, err, want)
				}
			})
		}
		ask("1")
		begun()
		for range 9 {
			ask("2")
		}
		synctest.Wait()
		ask("2")
		wg.Wait()
		ask("3")
		wg.Wait()
		ask("4", node.Links)
		begun()
		ask("5", node.Shares) // other parts are another description
		wg.Wait()
	})
}

// TestDescriptions_Leave: a caller that leaves gets its answer at once. The description goes on for the others,
// and ends with the last one.
func TestDescriptions_Leave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inspector := &slowInspector{}
		s := newDescriptions(inspector, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { // begins, and leaves
			if _, err := s.describe(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		begun()
		wg.Go(func() { // joins with the next, and leaves
			if _, err := s.describe(ctx); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if got, err := s.describe(t.Context()); err != nil || got.Problems[0].GetText() != "2" {
				t.Errorf("%v, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		synctest.Wait()
		if inspector.canceled != 1 || inspector.begun != 2 {
			t.Errorf("%d of %d descriptions were canceled", inspector.canceled, inspector.begun)
		}
	})
}

// TestDescriptions_LittleTime: a caller with little time gets a description of its own, which hurries.
func TestDescriptions_LittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newDescriptions(&slowInspector{}, nil)
		go func() { _, _ = s.describe(t.Context()) }()
		begun()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if got, err := s.describe(ctx); err != nil || got.Problems[0].GetText() != "2" || time.Since(begin) != time.Second {
			t.Errorf("%v, %v after %s", got, err, time.Since(begin))
		}
	})
}
