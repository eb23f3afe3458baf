package shared

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const gather = 2 * time.Millisecond

// begun waits until an answer has begun, if it was asked for.
func begun() {
	synctest.Wait()
	time.Sleep(gather)
	synctest.Wait()
}

// numbered numbers its answers, each of which takes a second.
type numbered struct {
	*Answers[string, int]
	mu              sync.Mutex
	begun, canceled int
}

func newNumbered() *numbered {
	return &numbered{Answers: New[string, int](gather, 1500*time.Millisecond)}
}

func (n *numbered) count(number *int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	*number++
	return *number
}

func (n *numbered) find(ctx context.Context, value *int) error {
	*value = n.count(&n.begun)
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		n.count(&n.canceled)
		return ctx.Err()
	}
}

func (n *numbered) ask(ctx context.Context, question string) (int, error) {
	answer := n.Join(ctx, question, n.find)
	defer answer.Leave()
	if err := answer.Wait(ctx); err != nil {
		return 0, err
	}
	return answer.Value, nil
}

// TestAnswers: callers that ask at once share an answer, which begins after they have asked.
func TestAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNumbered()
		var wg sync.WaitGroup
		ask := func(question string, want int) {
			wg.Go(func() {
				if got, err := n.ask(t.Context(), question); err != nil || got != want {
					t.Errorf("%d, %v, want %d", got, err, want)
				}
			})
		}
		ask("a", 1)
		synctest.Wait()
		ask("a", 1)
		begun()
		for range 9 {
			ask("a", 2)
		}
		synctest.Wait()
		ask("a", 2)
		wg.Wait()
		ask("a", 3)
		begun()
		ask("b", 4) // another question does not wait
		begin := time.Now()
		wg.Wait()
		if waited := time.Since(begin); waited != time.Second+gather {
			t.Errorf("two questions take %s", waited)
		}
		if len(n.next)+len(n.Answers.begun) > 0 {
			t.Errorf("%d and %d answers are left", len(n.next), len(n.Answers.begun))
		}
	})
}

// TestAnswers_Leave: a caller that leaves does not wait. The answer goes on for the others, and ends with the
// last one.
func TestAnswers_Leave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNumbered()
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 { // the first begins, the second waits for the next
			wg.Go(func() {
				if _, err := n.ask(ctx, ""); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
			begun()
		}
		wg.Go(func() {
			if got, err := n.ask(t.Context(), ""); err != nil || got != 2 {
				t.Errorf("%d, %v", got, err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
		synctest.Wait()
		if n.canceled != 1 || n.begun != 2 {
			t.Errorf("%d of %d answers were canceled", n.canceled, n.begun)
		}
	})
}

// TestAnswers_MaxWait: the next answer does not wait for long for one that hangs.
func TestAnswers_MaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNumbered()
		ctx, cancel := context.WithCancel(t.Context())
		hanging := n.Join(ctx, "", func(ctx context.Context, _ *int) error { <-ctx.Done(); return ctx.Err() })
		defer hanging.Leave()
		begun()
		begin := time.Now()
		if got, err := n.ask(t.Context(), ""); err != nil || got != 1 || time.Since(begin) != 2500*time.Millisecond {
			t.Errorf("%d, %v after %s", got, err, time.Since(begin))
		}
		cancel()
		if err := hanging.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
