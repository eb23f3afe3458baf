package node

import (
	"context"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// remembering asks once what the policy asks for each link to a volume. It is for one description, which changes nothing.
type remembering struct {
	win.Machine

	mu     sync.Mutex
	system []win.VolumeID // nil: not known yet
	paths  map[win.VolumeID]volumePaths
}

type volumePaths struct {
	names []string
	err   error
}

func (r *remembering) VolumePaths(ctx context.Context, id win.VolumeID) ([]string, error) {
	r.mu.Lock()
	known, ok := r.paths[id]
	r.mu.Unlock()
	if !ok {
		known.names, known.err = r.Machine.VolumePaths(ctx, id)
		r.mu.Lock()
		r.paths[id] = known
		r.mu.Unlock()
	}
	return known.names, known.err
}

func (r *remembering) SystemVolumes(ctx context.Context) (system []win.VolumeID, err error) {
	r.mu.Lock()
	system = r.system
	r.mu.Unlock()
	if system == nil {
		system, err = r.Machine.SystemVolumes(ctx)
		r.mu.Lock()
		r.system = system
		r.mu.Unlock()
	}
	return system, err
}
