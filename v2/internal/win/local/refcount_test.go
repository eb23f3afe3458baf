package local

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestRefCount_Race: many use it while it is closed; each use finds it open or is refused.
func TestRefCount_Race(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		open.Store(true)
		r := newRefCount(func() { open.Store(false) })
		for range 100 {
			go func() {
				for r.hold() {
					if !open.Load() {
						t.Error("it is closed while in use")
					}
					r.release()
				}
			}()
		}
		r.Close()
		r.Close()
		synctest.Wait()
		if open.Load() {
			t.Error("it is still open")
		}
	})
}
