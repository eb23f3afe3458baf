package local

import (
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// replacement is what Machine returns; nil means the machine itself.
var replacement atomic.Pointer[win.Machine]

// Use makes Machine return m, which passes calls on to what Machine has returned before, such as one whose calls
// are recorded. Hosts that exist keep their machine. Nil ends it.
func Use(m win.Machine) {
	if m == nil {
		replacement.Store(nil)
		return
	}
	replacement.Store(&m)
}
