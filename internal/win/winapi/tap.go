package winapi

import "sync/atomic"

// CodeTap learns of a control code, the bytes that were sent and those that the driver answered. It must
// not keep the slices. It is called concurrently.
type CodeTap func(code uint32, in, out []byte, err error)

var tap atomic.Pointer[CodeTap]

// Tap makes t the only tap of this process. Nil removes it.
func Tap(t CodeTap) {
	if t == nil {
		tap.Store(nil)
		return
	}
	tap.Store(&t)
}

// Tapped gives a control code to the tap. Without one it costs one nil check.
func Tapped(code uint32, in, out []byte, err error) {
	if t := tap.Load(); t != nil {
		(*t)(code, in, out, err)
	}
}
