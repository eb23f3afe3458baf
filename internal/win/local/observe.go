package local

import (
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/cim"
)

// Observer learns of every call to Windows that can hang, those to WMI included, when its
// caller goes on: the kind of the call, how long the caller has waited, and the error it got,
// the context's if the call was abandoned. Observers are called concurrently and must be quick.
type Observer func(kind string, elapsed time.Duration, err error)

// observer is nil while there is no observer.
var observer atomic.Pointer[Observer]

// Observe makes o the only observer of the calls of this process. Nil removes it.
func Observe(o Observer) {
	if o == nil {
		observer.Store(nil)
		cim.Observe(nil)
		return
	}
	observer.Store(&o)
	cim.Observe(func(elapsed time.Duration, err error) { o("call WMI", elapsed, err) })
}

// observed makes a call, and notifies the observer. Without one it costs one nil check.
func observed[T any](k kind, call func() (T, error)) (T, error) {
	o := observer.Load()
	if o == nil {
		return call()
	}
	start := time.Now()
	value, err := call()
	(*o)(string(k), time.Since(start), err)
	return value, err
}
