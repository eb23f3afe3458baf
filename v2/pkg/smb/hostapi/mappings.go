package api

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// account is the account that a mapping is created for. The password is kept only in hashes that
// mean nothing outside this process.
type account struct {
	name    string // of the user, as in the request
	user    [sha256.Size]byte
	login   [sha256.Size]byte // of the user and the password
	private bool              // it requires encryption, whatever Windows says about it
}

func newAccount(user, password string, private bool) account {
	return account{name: user, user: hashed(winpath.Fold(user), ""), login: hashed(user, password), private: private}
}

func hashed(user, password string) [sha256.Size]byte {
	key := processKey()
	hash := sha256.New()
	hash.Write(key[:])
	for _, text := range []string{user, password} {
		sum := sha256.Sum256([]byte(text))
		hash.Write(sum[:])
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// processKey makes the hashes useless outside this process.
var processKey = sync.OnceValue(func() (key [sha256.Size]byte) {
	_, _ = rand.Read(key[:]) // never fails
	return key
})

// mappings is what this process knows about mappings beyond what Windows says. The zero value
// is ready.
type mappings struct {
	mu     sync.Mutex
	ours   map[string]account       // those this process has created, by share
	broken map[string]time.Duration // since when they are known not to work, by share

	changes uint64
	changed map[string]uint64 // which of the changes was the last, by share
}

// made notes that this process has created a mapping.
func (m *mappings) made(share string, by account) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ours == nil {
		m.ours = map[string]account{}
	}
	m.ours[share] = by
	m.hasChanged(share)
}

// hasChanged notes that a mapping may open where it did not before. The caller holds mu.
func (m *mappings) hasChanged(share string) {
	if m.changed == nil {
		m.changed = map[string]uint64{}
	}
	m.changes++
	m.changed[share] = m.changes
	delete(m.broken, share)
}

func (m *mappings) changesOf(share string) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed[share]
}

// gone notes that a mapping does not exist.
func (m *mappings) gone(share string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.ours, share)
	delete(m.broken, share)
	delete(m.changed, share)
}

func (m *mappings) works(share string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hasChanged(share)
}

// of returns the account that this process has created a mapping for, if it has.
func (m *mappings) of(share string) (by account, ours bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by, ours = m.ours[share]
	return by, ours
}

// brokenSince notes that a mapping does not work, and returns since when that is known.
func (m *mappings) brokenSince(share string, now time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.broken == nil {
		m.broken = map[string]time.Duration{}
	}
	since, known := m.broken[share]
	if !known {
		since, m.broken[share] = now, now
	}
	return since
}
