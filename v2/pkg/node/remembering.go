package node

import (
	"context"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// remembering asks once what the policy asks for each link to a volume. It is for one description, which changes nothing,
// and in which all links have the same time.
type remembering struct {
	win.Machine

	system known[[]win.VolumeID]
	mu     sync.Mutex
	paths  map[win.VolumeID]*known[[]string]
}

// known is an answer that is asked for once. Who waits for it gives up when its own context ends.
type known[T any] struct {
	mu    sync.Mutex
	done  chan struct{} // closed when value and err are there
	value T
	err   error
}

func (k *known[T]) get(ctx context.Context, ask func() (T, error)) (T, error) {
	k.mu.Lock()
	isFirst := k.done == nil
	if isFirst {
		k.done = make(chan struct{})
	}
	k.mu.Unlock()
	if isFirst {
		defer close(k.done)
		k.err = context.Canceled // of a panic
		k.value, k.err = ask()
		return k.value, k.err
	}
	select {
	case <-k.done:
		return k.value, k.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}

func (r *remembering) VolumePaths(ctx context.Context, id win.VolumeID) ([]string, error) {
	r.mu.Lock()
	if r.paths == nil {
		r.paths = map[win.VolumeID]*known[[]string]{}
	}
	if r.paths[id] == nil {
		r.paths[id] = &known[[]string]{}
	}
	paths := r.paths[id]
	r.mu.Unlock()
	return paths.get(ctx, func() ([]string, error) { return r.Machine.VolumePaths(ctx, id) })
}

func (r *remembering) SystemVolumes(ctx context.Context) ([]win.VolumeID, error) {
	return r.system.get(ctx, func() ([]win.VolumeID, error) { return r.Machine.SystemVolumes(ctx) })
}
