package local

import "sync"

// refCount keeps a handle open while it is in use: by its owner, until Close, and by calls that run.
type refCount struct {
	mu     sync.Mutex
	users  int
	closed bool
	end    func() // called after the last use
}

// newRefCount counts its caller as the owner.
func newRefCount(end func()) *refCount { return &refCount{users: 1, end: end} }

// hold is false after Close.
func (r *refCount) hold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.users++
	return true
}

func (r *refCount) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.users--; r.users == 0 {
		r.end()
	}
}

// Close refuses further uses. The handle is closed when those that run have ended.
func (r *refCount) Close() {
	r.mu.Lock()
	closed := r.closed
	r.closed = true
	r.mu.Unlock()
	if !closed {
		r.release()
	}
}
