package resizefs

import (
	"k8s.io/mount-utils"
	mounter "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/mount-manager"
)

type resizeFs struct {
	mounter *mount.SafeFormatAndMount
}

var _ Resizefs = &resizeFs{}

// NewResizeFs returns new instance of resizer
func NewResizeFs(mounter *mount.SafeFormatAndMount) *resizeFs {
	return &resizeFs{mounter: mounter}
}

// Resize makes the file system as large as the disk.
func (r *resizeFs) Resize(_, deviceMountPath string) (bool, error) {
	_, err := mounter.Kit(r.mounter).Expand(mounter.Context(r.mounter), deviceMountPath, 0)
	return err == nil, err
}
