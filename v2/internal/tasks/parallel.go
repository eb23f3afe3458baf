package tasks

import (
	"context"
	"sync"
	"time"
)

const (
	// maxConcurrent is how many objects are asked at the same time. Healthy ones answer in microseconds.
	maxConcurrent = 8

	// slotTime is how long an object that does not answer counts as one of these: any number can hang at once.
	slotTime = 50 * time.Millisecond
)

// Each calls do for 0 to n-1, several at a time and each with its own time limit, and returns
// their errors when all are done. So objects that do not answer do not delay the others. A
// panic in do becomes the error of that call, see Recover.
func Each(ctx context.Context, n int, limit time.Duration, do func(ctx context.Context, i int) error) []error {
	failures := make([]error, n)
	// one reports whether it has kept its slot.
	slots := make(chan struct{}, maxConcurrent)
	one := func(i int) bool {
		slot := time.AfterFunc(slotTime, func() { <-slots })
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		failures[i] = Recover(ctx, func(ctx context.Context) error { return do(ctx, i) })
		return slot.Stop()
	}
	// Goroutines take several, because the stack of each new one has to grow.
	work := make(chan int)
	var wg sync.WaitGroup
	for i := range n {
		select {
		case work <- i:
		case slots <- struct{}{}:
			wg.Go(func() {
				for i, more := i, true; more; i, more = <-work {
					if !one(i) {
						return
					}
				}
				<-slots
			})
		}
	}
	close(work)
	wg.Wait()
	return failures
}
