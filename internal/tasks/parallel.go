package tasks

import (
	"context"
	"sync"
	"time"
)

// maxConcurrent is how many objects are asked at the same time. Healthy ones answer in
// microseconds: this is not for speed, but for the few that do not answer.
const maxConcurrent = 8

// Each calls do for 0 to n-1, several at a time and each with its own time limit, and returns
// their errors when all are done. So an object that does not answer does not delay the others. A
// panic in do becomes the error of that call, see Recover.
func Each(ctx context.Context, n int, limit time.Duration, do func(ctx context.Context, i int) error) []error {
	failures := make([]error, n)
	slots := make(chan struct{}, maxConcurrent)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			failures[i] = Recover(ctx, func(ctx context.Context) error { return do(ctx, i) })
		})
	}
	wg.Wait()
	return failures
}
