package gceGCEDriver

import (
	"context"

	"k8s.io/mount-utils"
	mountmanager "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/mount-manager"
)

// withContext returns the service of one request. On Windows the calls of its mounter end with ctx.
func (ns *GCENodeServer) withContext(ctx context.Context) *GCENodeServer {
	m, ok := ns.Mounter.Interface.(interface {
		WithContext(context.Context) *mount.SafeFormatAndMount
	})
	if !ok {
		return ns
	}
	service := *ns
	service.Mounter = m.WithContext(ctx)
	service.VolumeStatter = mountmanager.NewStatter(service.Mounter)
	return &service
}
