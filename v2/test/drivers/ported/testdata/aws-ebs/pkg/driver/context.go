package driver

import (
	"context"

	"github.com/kubernetes-sigs/aws-ebs-csi-driver/pkg/mounter"
)

// withContext returns the service of one request. On Windows the calls of its mounter end with ctx.
func (d *NodeService) withContext(ctx context.Context) *NodeService {
	m, ok := d.mounter.(interface {
		WithContext(context.Context) mounter.Mounter
	})
	if !ok {
		return d
	}
	service := *d
	service.mounter = m.WithContext(ctx)
	return &service
}
