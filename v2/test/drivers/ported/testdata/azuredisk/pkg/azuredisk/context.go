package azuredisk

import (
	"context"

	"k8s.io/mount-utils"
)

// withContext returns the service of one request. On Windows the calls of its mounter end with ctx.
func (d *Driver) withContext(ctx context.Context) *Driver {
	m, ok := d.mounter.Interface.(interface {
		WithContext(context.Context) *mount.SafeFormatAndMount
	})
	if !ok {
		return d
	}
	service := *d
	service.mounter = m.WithContext(ctx)
	return &service
}
