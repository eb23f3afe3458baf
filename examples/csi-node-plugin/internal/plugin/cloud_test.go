package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// cloud is the part of a driver that does not run on Windows nodes: it makes volumes, and
// attaches disks to the emulated node. Its identity is that of the plugin.
//
// The parameter kind of a volume is disk, smb or iscsi.
type cloud struct {
	csi.UnimplementedControllerServer
	node *winsim.Node

	mu       sync.Mutex
	volumes  map[string]int64  // sizes by handle
	luns     []string          // names of volumes of the target, by LUN
	attached map[string]uint32 // numbers of disks by handle
	known    map[string]uint32 // numbers that disks had when they were detached
}

func newCloud(node *winsim.Node) *cloud {
	return &cloud{node: node, volumes: map[string]int64{}, attached: map[string]uint32{}, known: map[string]uint32{}}
}

const fileServer = "files"

func (c *cloud) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, capability := range []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
	} {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: capability}},
		})
	}
	return response, nil
}

func (c *cloud) CreateVolume(_ context.Context, request *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := fnv.New64()
	_, _ = name.Write([]byte(request.GetName()))
	handle := fmt.Sprintf("disk/VOL%X", name.Sum64())
	switch request.GetParameters()["kind"] {
	case "iscsi":
		lun := slices.Index(c.luns, request.GetName())
		if lun < 0 {
			lun, c.luns = len(c.luns), append(c.luns, request.GetName())
		}
		handle = fmt.Sprintf("iscsi/10.0.0.10/%s/%d", pool, lun)
	case "smb":
		share := fmt.Sprintf("vol%x", name.Sum64())
		handle = "smb/" + fileServer + "/" + share
		if _, exists := c.volumes[handle]; exists {
			break
		}
		err := c.node.ChangeSMBServer(fileServer, func(server *winsim.SMBServer) {
			server.Shares = append(server.Shares, winsim.SMBShare{Name: share})
		})
		if err != nil {
			return nil, err
		}
	}
	size := request.GetCapacityRange().GetRequiredBytes()
	if before, exists := c.volumes[handle]; exists && before != size {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s has %d bytes", handle, before)
	}
	c.volumes[handle] = size
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: handle, CapacityBytes: size}}, nil
}

// DeleteVolume refuses to take away what the plugin has left mounted.
func (c *cloud) DeleteVolume(_ context.Context, request *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, attached := c.attached[request.GetVolumeId()]; attached {
		return nil, status.Error(codes.FailedPrecondition, "the volume is attached")
	}
	delete(c.volumes, request.GetVolumeId())
	return &csi.DeleteVolumeResponse{}, nil
}

func (c *cloud) ControllerPublishVolume(_ context.Context, request *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	handle := request.GetVolumeId()
	size, exists := c.volumes[handle]
	if !exists || request.GetNodeId() != nodeID {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s or no node %s", handle, request.GetNodeId())
	}
	serial, isDisk := strings.CutPrefix(handle, "disk/")
	if _, attached := c.attached[handle]; attached || !isDisk {
		return &csi.ControllerPublishVolumeResponse{}, nil
	}
	var number uint32
	var err error
	if before, ok := c.known[handle]; ok {
		number, err = c.node.ReattachDisk(before)
	} else {
		number, err = c.node.AttachDisk(winsim.Disk{Size: winsim.Size(size), Serial: serial})
	}
	if err != nil {
		return nil, err
	}
	c.attached[handle] = number
	return &csi.ControllerPublishVolumeResponse{}, nil
}

func (c *cloud) ValidateVolumeCapabilities(_ context.Context, request *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, exists := c.volumes[request.GetVolumeId()]; !exists {
		return nil, status.Errorf(codes.NotFound, "there is no volume %s", request.GetVolumeId())
	}
	return &csi.ValidateVolumeCapabilitiesResponse{
		Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: request.GetVolumeCapabilities()},
	}, nil
}

// ControllerUnpublishVolume insists that the disk is offline, or the node logged out: that is how the plugin says that it
// has let go.
func (c *cloud) ControllerUnpublishVolume(_ context.Context, request *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sessions := c.node.Describe().ISCSI.Sessions; len(sessions) > 0 {
		return nil, fmt.Errorf("the node is still logged in: %v", sessions)
	}
	number, attached := c.attached[request.GetVolumeId()]
	if !attached {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	info, err := c.node.DiskInfo(number)
	if err == nil && !info.Offline {
		err = errors.New("the disk is still online")
	}
	if err == nil {
		err = c.node.DetachDisk(number)
	}
	if err != nil {
		return nil, err
	}
	c.known[request.GetVolumeId()] = number
	delete(c.attached, request.GetVolumeId())
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (c *cloud) ControllerExpandVolume(_ context.Context, request *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := request.GetCapacityRange().GetRequiredBytes()
	c.volumes[request.GetVolumeId()] = size
	if number, attached := c.attached[request.GetVolumeId()]; attached {
		if err := c.node.GrowDisk(number, winsim.Size(size)); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: size, NodeExpansionRequired: true}, nil
}

// required refuses requests without a field that the specification requires.
func required(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	missing := false
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		missing = r.GetName() == "" || len(r.GetVolumeCapabilities()) == 0
	case *csi.ValidateVolumeCapabilitiesRequest:
		missing = len(r.GetVolumeCapabilities()) == 0
	case *csi.ControllerPublishVolumeRequest:
		missing = r.GetNodeId() == "" || r.GetVolumeCapability() == nil
	case *csi.ControllerExpandVolumeRequest:
		missing = r.GetCapacityRange() == nil
	}
	if r, ok := request.(interface{ GetVolumeId() string }); missing || ok && r.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "a required field is missing")
	}
	return handle(ctx, request)
}
