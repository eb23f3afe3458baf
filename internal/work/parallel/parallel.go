// Package parallel asks many objects at once, so that a sick one among them does not hold up
// the others.
package parallel

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// atOnce is how many objects are asked at the same time. Healthy ones answer in microseconds,
// so this is not for speed but for the sick one among many.
const atOnce = 8

// Each calls do for 0 to n-1, several at a time and each with a time limit of its own, and
// returns their errors when all are done.
func Each(ctx context.Context, n int, limit time.Duration, do func(ctx context.Context, i int) error) []error {
	failures := make([]error, n)
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			failures[i] = recovered(func() error { return do(ctx, i) })
		})
	}
	wg.Wait()
	return failures
}

// recovered makes an error of a panic: on a goroutine of ours it would end the program.
func recovered(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	return do()
}
