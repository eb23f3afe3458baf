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

// known is an answer that is asked for once.
type known[T any] struct {
	once  sync.Once
	value T
	err   error
}

func (k *known[T]) get(ask func() (T, error)) (T, error) {
	k.once.Do(func() {
		k.err = context.Canceled // of a panic
		k.value, k.err = ask()
	})
	return k.value, k.err
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
	return paths.get(func() ([]string, error) { return r.Machine.VolumePaths(ctx, id) })
}

func (r *remembering) SystemVolumes(ctx context.Context) ([]win.VolumeID, error) {
	return r.system.get(func() ([]win.VolumeID, error) { return r.Machine.SystemVolumes(ctx) })
}
