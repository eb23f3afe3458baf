package serve

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Launch starts a daemon on a machine and returns when it is ready. kill ends it as kill -9 does; it does not wait, and
// ended is closed when all of it is gone.
func Launch(ctx context.Context, machine win.Machine, cfg Config) (kill func(), ended <-chan struct{}, err error) {
	p := launch(ctx, machine, cfg)
	select {
	case <-p.ready:
		return p.kill, p.ended, nil
	case <-p.ended:
		return nil, nil, p.err
	}
}
