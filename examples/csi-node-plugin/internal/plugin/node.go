package plugin

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
)

// nodeServer checks what kubelet asks for, and lets the mounter do it. The codes of its errors
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
		csi.NodeServiceCapability_RPC_VOLUME_CONDITION,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

func (s *nodeServer) NodeStageVolume(ctx context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := checkPath(request, "staging target path", request.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	v, err := volumeFor(request)
	if err != nil {
		return nil, err
	}
	return do(s.inFlight, request, &csi.NodeStageVolumeResponse{}, func() error {
		as := request.GetVolumeCapability().GetMount()
		_, err := s.config.Mounter.Stage(ctx, mounter.StageRequest{
			Path: request.GetStagingTargetPath(), Source: v.source(request.GetSecrets()), FSType: as.GetFsType(), MountFlags: as.GetMountFlags(),
		})
		return answer(err)
	})
}

// NodeUnstageVolume takes a disk offline, so that it can be detached without loss.
func (s *nodeServer) NodeUnstageVolume(ctx context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := checkPath(request, "staging target path", request.GetStagingTargetPath()); err != nil {
		return nil, err
	}
	v, err := volumeOf(request.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return do(s.inFlight, request, &csi.NodeUnstageVolumeResponse{}, func() error {
		return answer(s.config.Mounter.Unstage(ctx, mounter.UnstageRequest{
			Path: request.GetStagingTargetPath(), Source: v.source(nil), Offline: v.remote == "",
		}))
	})
}

func (s *nodeServer) NodePublishVolume(ctx context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := checkPath(request, "target path", request.GetTargetPath()); err != nil {
		return nil, err
	}
	v, err := volumeFor(request)
	switch {
	case err != nil:
		return nil, err
	case request.GetReadonly():
		return nil, status.Error(codes.InvalidArgument, "a link cannot be read-only on Windows; set readOnly in the container's volumeMounts instead")
	case request.GetStagingTargetPath() == "":
		return nil, status.Error(codes.FailedPrecondition, "the staging target path is missing; stage the volume first")
	}
	var source mounter.Source
	if secrets := request.GetSecrets(); len(secrets) > 0 { // a share that was lost is connected again
		source = v.source(secrets)
	}
	return do(s.inFlight, request, &csi.NodePublishVolumeResponse{}, func() error {
		return answer(s.config.Mounter.Publish(ctx, request.GetStagingTargetPath(), request.GetTargetPath(), source))
	})
}

func (s *nodeServer) NodeUnpublishVolume(ctx context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := checkPath(request, "target path", request.GetTargetPath()); err != nil {
		return nil, err
	}
	if _, err := volumeOf(request.GetVolumeId()); err != nil {
		return nil, err
	}
	return do(s.inFlight, request, &csi.NodeUnpublishVolumeResponse{}, func() error {
		return answer(s.config.Mounter.Unpublish(ctx, request.GetTargetPath()))
	})
}

func (s *nodeServer) NodeExpandVolume(ctx context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if request.GetVolumeCapability().GetBlock() != nil {
		return nil, errBlock
	}
	if err := checkPath(request, "volume path", request.GetVolumePath()); err != nil {
		return nil, err
	}
	if _, err := volumeOf(request.GetVolumeId()); err != nil {
		return nil, err
	}
	response := &csi.NodeExpandVolumeResponse{}
	return do(s.inFlight, request, response, func() error {
		sizes, err := s.config.Mounter.Expand(ctx, request.GetVolumePath(), request.GetCapacityRange().GetRequiredBytes())
		response.CapacityBytes = sizes.DiskBytes
		if sizes.DiskBytes > 0 { // a share has the size that its server gives it
			if err := checkSize(request.GetVolumeId(), sizes.DiskBytes, request.GetCapacityRange()); err != nil {
				return err
			}
		}
		if err != nil {
			return answer(err)
		}
		return nil
	})
}

// checkSize compares a disk with what was wanted. The file system fills the disk in any case.
func checkSize(handle string, size int64, wanted *csi.CapacityRange) error {
	switch {
	case size < wanted.GetRequiredBytes():
		return status.Errorf(codes.OutOfRange, "%s has %d bytes, but %d are required; grow the disk first", handle, size, wanted.GetRequiredBytes())
	case wanted.GetLimitBytes() > 0 && size > wanted.GetLimitBytes():
		return status.Errorf(codes.OutOfRange, "%s has %d bytes, more than the limit of %d", handle, size, wanted.GetLimitBytes())
	}
	return nil
}

func (s *nodeServer) NodeGetVolumeStats(ctx context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := checkPath(request, "volume path", request.GetVolumePath()); err != nil {
		return nil, err
	}
	if _, err := volumeOf(request.GetVolumeId()); err != nil {
		return nil, err
	}
	condition, err := s.config.Mounter.Condition(ctx, request.GetVolumePath())
	if err != nil {
		return nil, answer(err)
	}
	// Modules of CSI up to v1.12 have VolumeCondition.
	response := &csi.NodeGetVolumeStatsResponse{VolumeCondition: &csi.VolumeCondition{Abnormal: condition.Abnormal, Message: condition.Message}}
	switch usage, err := s.config.Mounter.Stats(ctx, request.GetVolumePath()); {
	case err == nil:
		response.Usage = []*csi.VolumeUsage{{
			Unit: csi.VolumeUsage_BYTES, Total: usage.TotalBytes, Used: usage.UsedBytes, Available: usage.AvailableBytes,
		}}
	case !condition.Inaccessible: // else the condition says more than the error
		return nil, answer(err)
	}
	return response, nil
}

// checkPath fails if the volume id or a path is missing. Name is what the specification calls the
// path. Required fields come first: a request without one is InvalidArgument, whatever its volume.
func checkPath(request interface{ GetVolumeId() string }, name, path string) error {
	switch {
	case request.GetVolumeId() == "":
		return status.Error(codes.InvalidArgument, "the volume id is missing")
	case path == "":
		return status.Errorf(codes.InvalidArgument, "the %s is missing", name)
	}
	return nil
}

// volumeFor returns the volume of a request, if it can be used as the request says.
func volumeFor(request interface {
	GetVolumeId() string
	GetVolumeCapability() *csi.VolumeCapability
},
) (volume, error) {
	if err := checkCapability(request.GetVolumeCapability()); err != nil {
		return volume{}, err
	}
	v, err := volumeOf(request.GetVolumeId())
	if err != nil {
		return volume{}, err
	}
	return v, v.accepts(request.GetVolumeCapability())
}

// answer gives an error of the mounter its code. The sentence stays: it names the object, the
// Windows error and what to do.
func answer(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(failure.Code(err), failure.Message(err))
}
