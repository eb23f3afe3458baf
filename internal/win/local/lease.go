package local

import (
	"sync"
	"time"
)

// leaseTime is how long a handle is lent. It is short, because a handle keeps Windows from locking
// the volume, and stays with a volume whose drive letter is given to another.
const leaseTime = 500 * time.Millisecond

// leases lends handles by name. Calls share a handle from the first of them until leaseTime later;
// it is closed when the last of these calls has returned. Without calls there is no handle, and no
// timer.
type leases[H any] struct {
	open  func(name string) (H, error) // it can hang
	close func(H)

	mu   sync.Mutex
	lent map[string]*lease[H]
}

type lease[H any] struct {
	*refCount
	handle H
}

// use calls f with the handle of a name.
func (l *leases[H]) use(name string, f func(H) error) error {
	mine, err := l.hold(name)
	if err != nil {
		return err
	}
	defer mine.release()
	return f(mine.handle)
}

// hold returns a lease that its caller releases.
func (l *leases[H]) hold(name string) (*lease[H], error) {
	if current := l.current(name); current != nil {
		return current, nil
	}
	handle, err := l.open(name)
	if err != nil {
		return nil, err
	}
	mine := &lease[H]{newRefCount(func() { l.close(handle) }), handle}
	mine.hold()
	if !l.lend(name, mine) {
		mine.Close() // another call was faster; only this one uses mine
	}
	return mine, nil
}

func (l *leases[H]) current(name string) *lease[H] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if current := l.lent[name]; current != nil && current.hold() {
		return current
	}
	return nil
}

// lend offers a lease to other calls, unless there is one.
func (l *leases[H]) lend(name string, mine *lease[H]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lent[name] != nil {
		return false
	}
	if l.lent == nil {
		l.lent = map[string]*lease[H]{}
	}
	l.lent[name] = mine
	time.AfterFunc(leaseTime, func() {
		l.mu.Lock()
		delete(l.lent, name)
		l.mu.Unlock()
		mine.Close()
	})
	return true
}
