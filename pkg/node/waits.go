package node

import (
	"context"
	"slices"
	"sync"
)

// waitsKey is the key of Waits in a context.
type waitsKey struct{}

// Waits are the objects that Describe has asked and that have not answered yet.
type Waits struct {
	mu    sync.Mutex
	names []string
}

// WithWaits returns a context in which Describe notes what it waits for.
func WithWaits(ctx context.Context, w *Waits) context.Context {
	return context.WithValue(ctx, waitsKey{}, w)
}

// beginWait notes that Describe asks an object. The caller calls end when the object has answered or
// the caller has given up. It does nothing without WithWaits.
func beginWait(ctx context.Context, name string) (end func()) {
	w, ok := ctx.Value(waitsKey{}).(*Waits)
	if !ok {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if at := slices.Index(w.names, name); at >= 0 {
			w.names = slices.Delete(w.names, at, at+1)
		}
	}
}

// Names returns the objects, the one that was asked first on top.
func (w *Waits) Names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.names)
}
