package tasks

import (
	"context"
	"slices"
	"sync"
)

// Locks is a set of locks, one per key: calls on one service wait for each other, calls on
// different services do not. A caller whose context ends stops waiting at once. The zero value is
// ready for use.
type Locks[K comparable] struct {
	// Limit is how many may hold the lock of one key at once; 0 means one.
	Limit int

	mu   sync.Mutex
	held map[K]lock
}

// lock is held by some callers, while others wait in order of arrival.
type lock struct {
	holders int
	waiting []chan struct{} // closed to hand the lock over
}

// Lock waits for the lock of key. The caller must call unlock exactly once. If ctx ends first,
// Lock returns ctx's error.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	if err := l.Acquire(ctx, key); err != nil {
		return nil, err
	}
	return func() { l.Release(key) }, nil
}

// Acquire is Lock for callers that call Release. A lock that is free costs no allocation.
func (l *Locks[K]) Acquire(ctx context.Context, key K) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	turn := l.take(key)
	if turn == nil {
		return nil
	}
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		if !l.giveUp(key, turn) {
			l.Release(key) // it was handed over meanwhile
		}
		return ctx.Err()
	}
}

// take takes the lock if it is free. Otherwise it returns what is closed when it is the caller's turn.
func (l *Locks[K]) take(key K) (turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[K]lock{}
	}
	mine := l.held[key]
	if mine.holders < max(1, l.Limit) {
		mine.holders++
	} else {
		turn = make(chan struct{})
		mine.waiting = append(mine.waiting, turn)
	}
	l.held[key] = mine
	return turn
}

// giveUp leaves the line. It is false if the caller has the lock already.
func (l *Locks[K]) giveUp(key K, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.held[key]
	i := slices.Index(mine.waiting, turn)
	if i < 0 {
		return false
	}
	mine.waiting = slices.Delete(mine.waiting, i, i+1)
	l.held[key] = mine
	return true
}

// Release gives back a lock that Acquire returned. The set forgets a lock that is not held, so
// that it does not grow with every key ever used.
func (l *Locks[K]) Release(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.held[key]
	switch {
	case len(mine.waiting) > 0:
		close(mine.waiting[0])
		mine.waiting = slices.Delete(mine.waiting, 0, 1)
	case mine.holders == 1:
		delete(l.held, key)
		return
	default:
		mine.holders--
	}
	l.held[key] = mine
}
