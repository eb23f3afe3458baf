package plugin

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/examples/csi-node-plugin/internal/storage"
)

// share is a volume on an SMB server, which any number of nodes and volumes may use.
type share struct {
	node    storage.Node
	spaceAt func(path string) (total, free int64, err error)
	remote  string // \\server\share or a folder in it
}

func (s *share) accepts(capability *csi.VolumeCapability) error {
	if fsType := capability.GetMount().GetFsType(); fsType != "" {
		return status.Errorf(codes.InvalidArgument, "the server chooses the file system of a share; remove fsType: %s", fsType)
	}
	switch mode := capability.GetAccessMode().GetMode(); mode {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return nil
	default:
		return status.Errorf(codes.InvalidArgument,
			"access mode %v cannot be enforced for shares; use ReadWriteOnce or ReadWriteMany", mode)
	}
}

// stage needs the secrets username and password, and optionally domain. Without a username the
// server must admit guests.
func (s *share) stage(ctx context.Context, path string, secrets map[string]string) error {
	user := secrets["username"]
	if domain := secrets["domain"]; domain != "" && user != "" {
		user = domain + `\` + user
	}
	staged, err := s.node.Exists(ctx, path)
	if err != nil {
		return answer("look at the staging path", err)
	}
	err = s.node.MapShare(ctx, s.remote, path, user, secrets["password"])
	if codeOf(err) == codes.AlreadyExists {
		if err := s.makeRoom(ctx, path); err != nil {
			return err
		}
		staged = false
		err = s.node.MapShare(ctx, s.remote, path, user, secrets["password"])
	}
	if codeOf(err) == codes.NotFound { // the share, or the folder for the link
		if err := checkParent(ctx, s.node, path); err != nil {
			return err
		}
	}
	if err != nil {
		return answer("connect the share", err)
	}
	return s.checkFolder(ctx, path, staged)
}

// checkFolder fails if the link at the staging path leads to a folder that the share does not
// have. Such a link is removed, unless it was there before: pods have links to it, and the folder
// may come back.
func (s *share) checkFolder(ctx context.Context, path string, staged bool) error {
	works, err := s.node.IsLink(ctx, path)
	if err != nil {
		return answer("look for the folder on the share", err)
	}
	if works {
		return nil
	}
	if !staged {
		if err := s.unstage(ctx, path); err != nil {
			return err
		}
	}
	return status.Errorf(codes.NotFound, "%s cannot be opened; create the folder on the server, or correct its name", s.remote)
}

// makeRoom removes the empty folder that kubelet makes at the staging path, where the link
// goes. A link that works leads to another volume, and is kept.
func (s *share) makeRoom(ctx context.Context, path string) error {
	link, err := s.node.IsLink(ctx, path)
	switch {
	case err != nil:
		return answer("look at the staging path", err)
	case link:
		return status.Errorf(codes.AlreadyExists, "another volume is staged at %s", path)
	}
	return answer("remove the empty folder at the staging path", s.node.Remove(ctx, path))
}

func (s *share) unstage(ctx context.Context, path string) error {
	if err := s.checkTarget(ctx, path); err != nil {
		return err
	}
	if err := s.node.Remove(ctx, path); err != nil {
		return answer("remove the link to the share", err)
	}
	// Other volumes on the share keep it connected; CSI Proxy looks for their links.
	return answer("disconnect the share", s.node.UnmapShare(ctx, s.remote))
}

// check cannot tell to which share a link leads, because the API does not.
func (s *share) check(ctx context.Context, path string) error {
	exists, err := s.node.Exists(ctx, path)
	if err != nil {
		return answer("look for the volume", err)
	}
	link := false
	if exists {
		if link, err = s.node.IsLink(ctx, path); err != nil {
			return answer("look for the volume", err)
		}
	}
	if !link {
		return status.Errorf(codes.NotFound, "share %s is not at %s", s.remote, path)
	}
	return nil
}

// checkTarget refuses a path where a disk is mounted.
func (s *share) checkTarget(ctx context.Context, path string) error {
	if _, err := s.node.MountedAt(ctx, path); err == nil {
		return errOther(path)
	}
	return nil
}

// grow has nothing to do: a share has the size that its server gives it.
func (s *share) grow(ctx context.Context, path string, _ *csi.CapacityRange) (int64, error) {
	return 0, s.check(ctx, path)
}

func (s *share) usage(ctx context.Context, path string) (*csi.VolumeUsage, error) {
	if err := s.check(ctx, path); err != nil {
		return nil, err
	}
	total, free, err := s.spaceAt(path)
	if err != nil {
		return nil, answer("measure the share", err)
	}
	return &csi.VolumeUsage{Unit: csi.VolumeUsage_BYTES, Total: total, Used: total - free, Available: free}, nil
}
