package cim

import (
	"sync/atomic"
	"time"
)

// Observer is told of every call, when its caller goes on: how long that has waited, and the
// error it got. That is the context's if the call was abandoned. Observers are called
// concurrently and must be quick.
type Observer func(elapsed time.Duration, err error)

// observer is nil as long as nobody wants to know.
var observer atomic.Pointer[Observer]

// Observe makes o the observer of the calls of this process, in place of the one before. Nil
// ends it.
func Observe(o Observer) {
	if o == nil {
		observer.Store(nil)
		return
	}
	observer.Store(&o)
}

// observed makes a call, and tells the observer of it. Without one it costs a load.
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
