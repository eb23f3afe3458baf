package plugin

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nodeServer checks what kubelet asks for, and lets the volume do it. The codes of its errors
// are those of the CSI specification.
type nodeServer struct {
	csi.UnimplementedNodeServer
	config   Config
	inFlight *inFlight
}

func (s *nodeServer) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.config.NodeID}, nil
}

func (s *nodeServer) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, capability := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

func (s *nodeServer) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	v, path, err := s.locate(request.GetVolumeId(), "staging target path", request.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	if err := checkCapability(v, request.GetVolumeCapability()); err != nil {
		return nil, err
	}
	err = s.inFlight.do(request.GetVolumeId(), func() error { return v.stage(ctx, path, request.GetSecrets()) })
	if err != nil {
		return nil, err
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

func (s *nodeServer) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	v, path, err := s.locate(request.GetVolumeId(), "staging target path", request.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	err = s.inFlight.do(request.GetVolumeId(), func() error { return v.unstage(ctx, path) })
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func (s *nodeServer) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	v, target, err := s.locate(request.GetVolumeId(), "target path", request.GetTargetPath())
	if err != nil {
		return nil, err
	}
	if err := checkCapability(v, request.GetVolumeCapability()); err != nil {
		return nil, err
	}
	switch {
	case request.GetReadonly():
		return nil, status.Error(codes.InvalidArgument, "a link cannot be read-only on Windows; set readOnly in the container's volumeMounts instead")
	case request.GetStagingTargetPath() == "":
		return nil, status.Error(codes.FailedPrecondition, "the staging target path is missing; stage the volume first")
	}
	staging, err := windowsPath(request.GetStagingTargetPath())
	if err != nil {
		return nil, err
	}
	err = s.inFlight.do(request.GetVolumeId(), func() error {
		switch err := v.check(ctx, staging); {
		case status.Code(err) == codes.NotFound:
			return status.Errorf(codes.FailedPrecondition, "stage the volume first: %s", messageOf(err))
		case err != nil:
			return err
		}
		return s.link(ctx, target, staging)
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// link creates a pod's link. If the path is taken or has no parent, the error is rewritten for the
// operator: kubelet chose the path, and NotFound would mean the volume.
func (s *nodeServer) link(ctx context.Context, target, staging string) error {
	err := s.config.Storage.Link(ctx, target, staging)
	if codeOf(err) == codes.AlreadyExists {
		return status.Errorf(codes.AlreadyExists, "%s already exists and is not this volume; unpublish it, or remove it from the node", target)
	}
	if codeOf(err) == codes.NotFound {
		if err := checkParent(ctx, s.config.Storage, target); err != nil {
			return err
		}
	}
	return answer("link the pod's folder to the volume", err)
}

func (s *nodeServer) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	v, target, err := s.locate(request.GetVolumeId(), "target path", request.GetTargetPath())
	if err != nil {
		return nil, err
	}
	err = s.inFlight.do(request.GetVolumeId(), func() error {
		if err := v.checkTarget(ctx, target); err != nil {
			return err
		}
		return answer("remove the pod's link to the volume", s.config.Storage.Remove(ctx, target))
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (s *nodeServer) NodeExpandVolume(ctx context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if request.GetVolumeCapability().GetBlock() != nil {
		return nil, errBlock
	}
	v, path, err := s.published(request)
	if err != nil {
		return nil, err
	}
	response := &csi.NodeExpandVolumeResponse{}
	err = s.inFlight.do(request.GetVolumeId(), func() (err error) {
		response.CapacityBytes, err = v.grow(ctx, path, request.GetCapacityRange())
		return err
	})
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (s *nodeServer) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	v, path, err := s.published(request)
	if err != nil {
		return nil, err
	}
	usage, err := v.usage(ctx, path)
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{usage}}, nil
}

// locate returns the volume with a handle, and a path of a request in Windows' form. Name is
// what the specification calls the path.
func (s *nodeServer) locate(handle, name, path string) (volume, string, error) {
	if handle == "" {
		return nil, "", status.Error(codes.InvalidArgument, "the volume id is missing")
	}
	if path == "" {
		return nil, "", status.Errorf(codes.InvalidArgument, "the %s is missing", name)
	}
	v, err := s.volumeOf(handle)
	if err != nil {
		return nil, "", err
	}
	path, err = windowsPath(path)
	return v, path, err
}

// published returns the volume of a request and the path at which it should be. At a path that
// no volume can have it is not.
func (s *nodeServer) published(request interface {
	GetVolumeId() string
	GetVolumePath() string
},
) (volume, string, error) {
	v, path, err := s.locate(request.GetVolumeId(), "volume path", request.GetVolumePath())
	if v != nil && err != nil {
		err = status.Error(codes.NotFound, messageOf(err))
	}
	return v, path, err
}
