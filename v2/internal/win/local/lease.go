package local

import (
	"sync"
	"time"
)

// leaseTime is how long a handle is lent. It is short, because a handle keeps Windows from locking
// the volume, and stays with a volume whose drive letter is given to another.
const leaseTime = 500 * time.Millisecond

// leases lends handles by name. Calls share a handle from the first of them until leaseTime later;
// it is closed when the last of these calls has returned.
type leases[H any] struct {
	open  func(name string) (H, error) // it can hang
	close func(H)
	last  sync.Map // of *lease[H] by name; usually closed
}

type lease[H any] struct {
	*refCount
	handle H
}

// use calls f with the handle of a name. It fails if that cannot be opened.
func (l *leases[H]) use(name string, f func(H)) error {
	last, _ := l.last.Load(name)
	mine, _ := last.(*lease[H])
	if mine == nil || !mine.hold() {
		handle, err := l.open(name)
		if err != nil {
			return err
		}
		mine = &lease[H]{newRefCount(func() { l.close(handle) }), handle}
		mine.hold()
		l.last.Store(name, mine)
		time.AfterFunc(leaseTime, mine.Close)
	}
	defer mine.release()
	f(mine.handle)
	return nil
}
