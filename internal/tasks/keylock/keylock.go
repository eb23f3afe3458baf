// Package keylock locks objects by key: calls on one service wait for each other, calls on
// different services do not. A caller whose context ends stops waiting at once.
package keylock

import (
	"context"
	"sync"
)

// Locks is a set of locks, one per key. The zero value is ready for use.
type Locks[K comparable] struct {
	// Limit is how many may hold the lock of one key at once; 0 means one.
	Limit int

	mu   sync.Mutex
	held map[K]*lock
}

// lock is held by each caller that has put a value into its channel.
type lock struct {
	taken chan struct{} // as large as the limit
	users int           // holder and waiters; guarded by Locks.mu
}

// Lock waits for the lock of key. The caller must call unlock exactly once. If ctx ends first,
// Lock returns ctx's error.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine := l.join(key)
	select {
	case mine.taken <- struct{}{}:
		return func() {
			<-mine.taken
			l.leave(key, mine)
		}, nil
	case <-ctx.Done():
		l.leave(key, mine)
		return nil, ctx.Err()
	}
}

func (l *Locks[K]) join(key K) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[K]*lock{}
	}
	mine := l.held[key]
	if mine == nil {
		mine = &lock{taken: make(chan struct{}, max(1, l.Limit))}
		l.held[key] = mine
	}
	mine.users++
	return mine
}

// leave forgets the lock when its last user leaves, so that the set does not grow with every
// key ever used.
func (l *Locks[K]) leave(key K, mine *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.held, key)
	}
}
