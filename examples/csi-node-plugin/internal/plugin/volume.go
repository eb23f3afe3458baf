package plugin

import (
	"context"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// volume is one volume, of either kind. Errors carry a status.
type volume interface {
	// accepts fails if the volume cannot be used as the capability says.
	accepts(capability *csi.VolumeCapability) error
	// stage makes the volume appear at a path, and unstage takes it away from there.
	stage(ctx context.Context, path string, secrets map[string]string) error
	unstage(ctx context.Context, path string) error
	// check fails with NotFound unless the volume is at a path or at the end of a link there.
	check(ctx context.Context, path string) error
	// checkTarget fails with FailedPrecondition if what is at a path cannot be a pod's link to
	// the volume, because it is a mount, or leads to another volume. If that cannot be told, it
	// succeeds: the disk may be dying, and a pod that ends must lose its link.
	checkTarget(ctx context.Context, path string) error
	// grow makes the volume at a path as large as its disk, and returns its size, or 0 if the
	// volume has no size of its own.
	grow(ctx context.Context, path string, wanted *csi.CapacityRange) (size int64, err error)
	// usage measures the volume at a path.
	usage(ctx context.Context, path string) (*csi.VolumeUsage, error)
}

// volumeOf returns the volume with a handle.
func (s *nodeServer) volumeOf(handle string) (volume, error) {
	switch kind, name, _ := strings.Cut(handle, "/"); {
	case kind == "disk" && name != "":
		return &disk{node: s.config.Storage, serial: name, claim: newClaim(s.config, name)}, nil
	case kind == "smb" && strings.Count(strings.Trim(name, "/"), "/") >= 1:
		return &share{
			node:    s.config.Storage,
			spaceAt: s.config.SpaceAt,
			remote:  `\\` + strings.ReplaceAll(strings.Trim(name, "/"), "/", `\`),
		}, nil
	}
	return nil, status.Errorf(codes.NotFound, "volume %s not found: handles are disk/SERIAL and smb/SERVER/SHARE", handle)
}

// errOther refuses to unmount another volume.
func errOther(path string) error {
	return status.Errorf(codes.FailedPrecondition, "another volume is mounted at %s", path)
}

var errBlock = status.Error(codes.InvalidArgument, "raw block volumes are not supported on Windows; use volumeMode: Filesystem")

// checkCapability refuses what no volume on Windows can do, and then asks the volume.
func checkCapability(v volume, capability *csi.VolumeCapability) error {
	switch {
	case capability == nil:
		return status.Error(codes.InvalidArgument, "the volume capability is missing")
	case capability.GetBlock() != nil:
		return errBlock
	case capability.GetMount() == nil:
		return status.Error(codes.InvalidArgument, "the volume capability has no access type")
	case len(capability.GetMount().GetMountFlags()) > 0:
		return status.Error(codes.InvalidArgument, "Windows has no mount options; remove mountOptions")
	}
	return v.accepts(capability)
}
