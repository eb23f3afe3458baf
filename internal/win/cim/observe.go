package cim

import (
	"sync/atomic"
	"time"
)

// Observer learns of every call when its caller goes on: how long the caller has waited, and
// the error it got, the context's if the call was abandoned. Observers are called concurrently
// and must be quick.
type Observer func(elapsed time.Duration, err error)

// observer is nil while there is no observer.
var observer atomic.Pointer[Observer]

// Observe makes o the only observer of the calls of this process. Nil removes it.
func Observe(o Observer) {
	if o == nil {
		observer.Store(nil)
		return
	}
	observer.Store(&o)
}

// observed makes a call, and notifies the observer. Without one it costs one nil check.
func observed(call func() error) error {
	o := observer.Load()
	if o == nil {
		return call()
	}
	start := time.Now()
	err := call()
	(*o)(time.Since(start), err)
	return err
}
