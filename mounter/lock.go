package mounter

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// locks keeps calls about a path or a disk apart. A caller whose context ends stops waiting at once.
//
// Lock order: paths before disks, disks before targets, and paths in the order of their names.
type locks struct {
	mu   sync.Mutex
	held map[string]*held
}

type held struct {
	taken chan struct{}
	users int // holder and waiters; guarded by locks.mu
}

// paths locks paths. Case does not matter, as in the names of files.
func (l *locks) paths(ctx context.Context, paths ...string) (unlock func(), err error) {
	keys := make([]string, len(paths))
	for i, path := range paths {
		keys[i] = strings.ToLower(path)
	}
	slices.Sort(keys)
	var unlocks []func()
	release := func() {
		for _, f := range slices.Backward(unlocks) {
			f()
		}
	}
	for _, key := range slices.Compact(keys) {
		f, err := l.lock(ctx, key)
		if err != nil {
			release()
			return nil, err
		}
		unlocks = append(unlocks, f)
	}
	return release, nil
}

func (l *locks) disk(ctx context.Context, number uint32) (unlock func(), err error) {
	return l.lock(ctx, "disk "+strconv.FormatUint(uint64(number), 10)) // no path has this form
}

func (l *locks) target(ctx context.Context, name string) (unlock func(), err error) {
	return l.lock(ctx, "target "+strings.ToLower(name))
}

// isHeld reports whether a call has or wants a lock.
func (l *locks) isHeld(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[key] != nil
}

func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
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

func (l *locks) join(key string) *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[string]*held{}
	}
	mine := l.held[key]
	if mine == nil {
		mine = &held{taken: make(chan struct{}, 1)}
		l.held[key] = mine
	}
	mine.users++
	return mine
}

// leave forgets the lock when its last user leaves.
func (l *locks) leave(key string, mine *held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(l.held, key)
	}
}
