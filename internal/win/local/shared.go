package local

import (
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// errInvalidHandle is ERROR_INVALID_HANDLE, for what was closed.
const errInvalidHandle winerr.Code = 6

// shared is open as long as anybody uses it: its owner, until it closes it, and calls that
// run. One that was abandoned would otherwise go on to use a handle after it was closed,
// when the number may already mean something else.
type shared struct {
	mu     sync.Mutex
	users  int
	closed bool
	end    func() // called after the last use
}

// newShared returns what its caller owns.
func newShared(end func()) *shared { return &shared{users: 1, end: end} }

// use runs f while it is open.
func (s *shared) use(f func() error) error {
	if !s.hold() {
		return errInvalidHandle
	}
	defer s.release()
	return f()
}

func (s *shared) hold() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.users++
	return true
}

func (s *shared) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.end()
	}
}

// Close lets no more calls begin, and ends it when those that run have ended.
func (s *shared) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		s.release()
	}
}
