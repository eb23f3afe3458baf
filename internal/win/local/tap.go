package local

import (
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

// instead is what Machine returns; nil means the machine itself.
var instead atomic.Pointer[win.Machine]

// Use makes Machine return m, which passes calls on to what Machine has returned before, such as a
// recorder. Hosts that exist keep their machine. Nil ends it.
func Use(m win.Machine) {
	if m == nil {
		instead.Store(nil)
		return
	}
	instead.Store(&m)
}

// Tap gives what is exchanged below the seam to the functions, which must be quick: the bytes of control
// codes, and the rows that WMI answers to queries. Nil ends it.
//
// Neither can hold a secret. Secrets go to the functions of iSCSI and to the parameters of WMI methods, and
// no tap is there.
func Tap(codes winapi.CodeTap, rows cim.RowTap) {
	winapi.Tap(codes)
	cim.Tap(rows)
}
