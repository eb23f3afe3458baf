package api

import (
	"crypto/sha256"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// who is an account that a mapping is made for, in a form that means nothing outside this
// process.
type who struct {
	user    [sha256.Size]byte
	account [sha256.Size]byte // the password as well
	private bool              // who requires encryption
}

func newWho(user, password string, private bool) who {
	return who{user: account(winpath.Fold(user), ""), account: account(user, password), private: private}
}

// mappings are what we know of mappings beyond what Windows says. The zero value is ready.
type mappings struct {
	mu     sync.Mutex
	ours   map[string]who       // those this process has made, by share
	broken map[string]time.Time // since when they are known not to work, by share
}

// made notes that this process has made a mapping.
func (m *mappings) made(share string, by who) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ours == nil {
		m.ours = map[string]who{}
	}
	m.ours[share] = by
	delete(m.broken, share)
}

// gone notes that a mapping is not there any more.
func (m *mappings) gone(share string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ours, share)
	delete(m.broken, share)
}

// works notes that a mapping works.
func (m *mappings) works(share string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.broken, share)
}

// of tells whom this process has made a mapping for, if it has.
func (m *mappings) of(share string) (by who, ours bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by, ours = m.ours[share]
	return by, ours
}

// private reports whether this process has made a mapping with encryption, whatever Windows
// says about it.
func (m *mappings) private(share string) bool {
	by, _ := m.of(share)
	return by.private
}

// brokenSince notes that a mapping does not work, and returns since when that is known.
func (m *mappings) brokenSince(share string, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.broken = map[string]time.Time{}
	}
	since, known := m.broken[share]
	if !known {
		since, m.broken[share] = now, now
	}
	return since
}
