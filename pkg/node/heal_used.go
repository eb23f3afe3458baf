package node

import (
	"sync"
	"time"

	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

// A share whose mapping is lost looks the same after a start of Windows, when only a driver can bring
// it back, and while its password is rotated under running pods, whose links must stay. Only time
// distinguishes them: the second share has worked since the start.

// beginLimit is how long after Windows a Node may begin and still know that it has seen every use of a
// share since. Windows starts services within minutes; containers follow.
const beginLimit = 30 * time.Minute

// usedShares are those that have worked since a Node began.
type usedShares struct {
	mu     sync.Mutex
	shares map[string]bool
}

func (u *usedShares) add(share string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.shares == nil {
		u.shares = map[string]bool{}
	}
	u.shares[share] = true
}

func (u *usedShares) has(share string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.shares[share]
}

// originOf says whether a link to a share can have been in use since Windows started.
func (h *healing) originOf(link *stagingLink) origin {
	share := link.remote.Share()
	started := h.m.Now().Add(-h.uptime)
	switch {
	case h.noUptime != nil || link.noDate != nil || link.changed.After(started):
		return sinceStart
	case h.began.Sub(started) > beginLimit: // it has not seen everything
		return sinceStart
	case h.used.has(share):
		return sinceStart
	}
	if teller, ok := h.smb.(smbapi.MappingTeller); ok && teller.MappingFacts(share).Created {
		return sinceStart
	}
	return beforeStart
}
