package api_test

import (
	"context"

	"google.golang.org/grpc"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
)

// Drivers test themselves with fakes of the generated interfaces that embed nothing
// and set exported fields. These two are such fakes. If they stop compiling, so do
// the tests of drivers: the code was generated with other options, most likely
// without require_unimplemented_servers=false.
var (
	_ disk.DiskServer             = fakeDiskServer{}
	_ filesystem.FilesystemClient = (*fakeFilesystemClient)(nil)
)

// fakeDiskServer implements each method itself and embeds nothing.
type fakeDiskServer struct{}

func (fakeDiskServer) ListDiskLocations(context.Context, *disk.ListDiskLocationsRequest) (*disk.ListDiskLocationsResponse, error) {
	return &disk.ListDiskLocationsResponse{
		DiskLocations: map[uint32]*disk.DiskLocation{1: {Adapter: "0", Bus: "0", Target: "0", LUNID: "3"}},
	}, nil
}

func (fakeDiskServer) PartitionDisk(context.Context, *disk.PartitionDiskRequest) (*disk.PartitionDiskResponse, error) {
	return &disk.PartitionDiskResponse{}, nil
}

func (fakeDiskServer) Rescan(context.Context, *disk.RescanRequest) (*disk.RescanResponse, error) {
	return &disk.RescanResponse{}, nil
}

func (fakeDiskServer) ListDiskIDs(context.Context, *disk.ListDiskIDsRequest) (*disk.ListDiskIDsResponse, error) {
	return &disk.ListDiskIDsResponse{
		DiskIDs: map[uint32]*disk.DiskIDs{1: {Page83: "naa.1", SerialNumber: "vol1"}},
	}, nil
}

func (fakeDiskServer) GetDiskStats(context.Context, *disk.GetDiskStatsRequest) (*disk.GetDiskStatsResponse, error) {
	return &disk.GetDiskStatsResponse{TotalBytes: 1 << 30}, nil
}

func (fakeDiskServer) SetDiskState(context.Context, *disk.SetDiskStateRequest) (*disk.SetDiskStateResponse, error) {
	return &disk.SetDiskStateResponse{}, nil
}

func (fakeDiskServer) GetDiskState(context.Context, *disk.GetDiskStateRequest) (*disk.GetDiskStateResponse, error) {
	return &disk.GetDiskStateResponse{IsOnline: true}, nil
}

// fakeFilesystemClient stands in for a connection to the proxy.
type fakeFilesystemClient struct{}

func (*fakeFilesystemClient) PathExists(_ context.Context, in *filesystem.PathExistsRequest, _ ...grpc.CallOption) (*filesystem.PathExistsResponse, error) {
	return &filesystem.PathExistsResponse{Exists: in.Path != ""}, nil
}

func (*fakeFilesystemClient) Mkdir(context.Context, *filesystem.MkdirRequest, ...grpc.CallOption) (*filesystem.MkdirResponse, error) {
	return &filesystem.MkdirResponse{}, nil
}

func (*fakeFilesystemClient) Rmdir(context.Context, *filesystem.RmdirRequest, ...grpc.CallOption) (*filesystem.RmdirResponse, error) {
	return &filesystem.RmdirResponse{}, nil
}

func (*fakeFilesystemClient) CreateSymlink(context.Context, *filesystem.CreateSymlinkRequest, ...grpc.CallOption) (*filesystem.CreateSymlinkResponse, error) {
	return &filesystem.CreateSymlinkResponse{}, nil
}

func (*fakeFilesystemClient) IsSymlink(context.Context, *filesystem.IsSymlinkRequest, ...grpc.CallOption) (*filesystem.IsSymlinkResponse, error) {
	return &filesystem.IsSymlinkResponse{IsSymlink: true}, nil
}
