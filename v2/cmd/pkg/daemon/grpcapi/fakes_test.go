package grpcapi_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

// dial serves one endpoint in memory and returns a connection to it.
func dial(t *testing.T, e grpcapi.Endpoint, s grpcapi.Services, options ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(64 << 10)
	server := grpc.NewServer(options...)
	e.Register(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///"+e.Name(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close connection: %v", err)
		}
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return conn
}

// withStatus is what the real server does to errors.
func withStatus(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	response, err := next(ctx, request)
	return response, grpcapi.Status(err)
}

func endpoint(t *testing.T, name string) grpcapi.Endpoint {
	t.Helper()
	found, err := grpcapi.Select([]string{name})
	if err != nil || len(found) != 1 {
		t.Fatalf("Select(%q) = %v, %v, want one endpoint", name, found, err)
	}
	return found[0]
}

// recorder stands behind all fakes: it keeps the last request the library got,
// and fails every call if err is set.
type recorder struct {
	mu  sync.Mutex
	got any
	err error
}

// take returns the last request and forgets it.
func (r *recorder) take() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

// failWith makes every further call fail, or none if err is nil.
func (r *recorder) failWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func record[Out any](r *recorder, request any, response *Out) (*Out, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = request
	if r.err != nil {
		return nil, r.err
	}
	return response, nil
}

func (r *recorder) services() grpcapi.Services {
	return grpcapi.Services{
		Disk:       fakeDisk{recorder: r},
		Filesystem: fakeFilesystem{recorder: r},
		ISCSI:      fakeISCSI{r},
		SMB:        fakeSMB{r},
		System:     fakeSystem{r},
		Volume:     fakeVolume{recorder: r},
	}
}

type fakeDisk struct {
	disk.Extended // nil: no test calls the rest
	*recorder
}

func (f fakeDisk) GetDiskState(_ context.Context, in *disk.GetDiskStateRequest) (*disk.GetDiskStateResponse, error) {
	return record(f.recorder, in, &disk.GetDiskStateResponse{IsOnline: true})
}

func (f fakeDisk) GetDiskStats(_ context.Context, in *disk.GetDiskStatsRequest) (*disk.GetDiskStatsResponse, error) {
	return record(f.recorder, in, &disk.GetDiskStatsResponse{TotalBytes: 1 << 40})
}

func (f fakeDisk) ListDiskIDs(_ context.Context, in *disk.ListDiskIDsRequest) (*disk.ListDiskIDsResponse, error) {
	return record(f.recorder, in, &disk.ListDiskIDsResponse{DiskIDs: map[uint32]*disk.DiskIDs{
		0:          {Page83: "Google  pvc-1", SerialNumber: "S0"},
		2:          {SerialNumber: "S\xff2"}, // as bytes from a device may be
		4294967295: {},
	}})
}

func (f fakeDisk) ListDiskLocations(_ context.Context, in *disk.ListDiskLocationsRequest) (*disk.ListDiskLocationsResponse, error) {
	return record(f.recorder, in, &disk.ListDiskLocationsResponse{DiskLocations: map[uint32]*disk.DiskLocation{
		0: {Adapter: "1", Bus: "2", Target: "3", LUNID: "4"},
		7: {Adapter: "5"},
	}})
}

func (f fakeDisk) PartitionDisk(_ context.Context, in *disk.PartitionDiskRequest) (*disk.PartitionDiskResponse, error) {
	return record(f.recorder, in, &disk.PartitionDiskResponse{})
}

func (f fakeDisk) Rescan(_ context.Context, in *disk.RescanRequest) (*disk.RescanResponse, error) {
	return record(f.recorder, in, &disk.RescanResponse{})
}

func (f fakeDisk) SetDiskState(_ context.Context, in *disk.SetDiskStateRequest) (*disk.SetDiskStateResponse, error) {
	return record(f.recorder, in, &disk.SetDiskStateResponse{})
}

type fakeFilesystem struct {
	filesystem.Extended // nil: no test calls the rest
	*recorder
}

func (f fakeFilesystem) CreateSymlink(_ context.Context, in *filesystem.CreateSymlinkRequest) (*filesystem.CreateSymlinkResponse, error) {
	return record(f.recorder, in, &filesystem.CreateSymlinkResponse{})
}

func (f fakeFilesystem) IsSymlink(_ context.Context, in *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	return record(f.recorder, in, &filesystem.IsSymlinkResponse{IsSymlink: true})
}

func (f fakeFilesystem) Mkdir(_ context.Context, in *filesystem.MkdirRequest) (*filesystem.MkdirResponse, error) {
	return record(f.recorder, in, &filesystem.MkdirResponse{})
}

func (f fakeFilesystem) PathExists(_ context.Context, in *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	return record(f.recorder, in, &filesystem.PathExistsResponse{Exists: true})
}

func (f fakeFilesystem) PathValid(_ context.Context, in *filesystem.PathValidRequest) (*filesystem.PathValidResponse, error) {
	return record(f.recorder, in, &filesystem.PathValidResponse{Valid: true})
}

func (f fakeFilesystem) Rmdir(_ context.Context, in *filesystem.RmdirRequest) (*filesystem.RmdirResponse, error) {
	return record(f.recorder, in, &filesystem.RmdirResponse{})
}

func (f fakeFilesystem) RmdirContents(_ context.Context, in *filesystem.RmdirContentsRequest) (*filesystem.RmdirContentsResponse, error) {
	return record(f.recorder, in, &filesystem.RmdirContentsResponse{})
}

type fakeISCSI struct{ *recorder }

func (f fakeISCSI) AddTargetPortal(_ context.Context, in *iscsi.AddTargetPortalRequest) (*iscsi.AddTargetPortalResponse, error) {
	return record(f.recorder, in, &iscsi.AddTargetPortalResponse{})
}

func (f fakeISCSI) ConnectTarget(_ context.Context, in *iscsi.ConnectTargetRequest) (*iscsi.ConnectTargetResponse, error) {
	return record(f.recorder, in, &iscsi.ConnectTargetResponse{})
}

func (f fakeISCSI) DisconnectTarget(_ context.Context, in *iscsi.DisconnectTargetRequest) (*iscsi.DisconnectTargetResponse, error) {
	return record(f.recorder, in, &iscsi.DisconnectTargetResponse{})
}

func (f fakeISCSI) DiscoverTargetPortal(_ context.Context, in *iscsi.DiscoverTargetPortalRequest) (*iscsi.DiscoverTargetPortalResponse, error) {
	return record(f.recorder, in, &iscsi.DiscoverTargetPortalResponse{IQNs: []string{"iqn.a", "iqn.b"}})
}

func (f fakeISCSI) GetTargetDisks(_ context.Context, in *iscsi.GetTargetDisksRequest) (*iscsi.GetTargetDisksResponse, error) {
	return record(f.recorder, in, &iscsi.GetTargetDisksResponse{DiskIDs: []string{"4", "5"}})
}

func (f fakeISCSI) ListTargetPortals(_ context.Context, in *iscsi.ListTargetPortalsRequest) (*iscsi.ListTargetPortalsResponse, error) {
	return record(f.recorder, in, &iscsi.ListTargetPortalsResponse{TargetPortals: []*iscsi.TargetPortal{
		{TargetAddress: "10.0.0.1", TargetPort: 3260},
		{TargetAddress: "::1", TargetPort: 7},
	}})
}

func (f fakeISCSI) RemoveTargetPortal(_ context.Context, in *iscsi.RemoveTargetPortalRequest) (*iscsi.RemoveTargetPortalResponse, error) {
	return record(f.recorder, in, &iscsi.RemoveTargetPortalResponse{})
}

func (f fakeISCSI) SetMutualChapSecret(_ context.Context, in *iscsi.SetMutualChapSecretRequest) (*iscsi.SetMutualChapSecretResponse, error) {
	return record(f.recorder, in, &iscsi.SetMutualChapSecretResponse{})
}

type fakeSMB struct{ *recorder }

func (f fakeSMB) NewSMBGlobalMapping(_ context.Context, in *smb.NewSMBGlobalMappingRequest) (*smb.NewSMBGlobalMappingResponse, error) {
	return record(f.recorder, in, &smb.NewSMBGlobalMappingResponse{})
}

func (f fakeSMB) RemoveSMBGlobalMapping(_ context.Context, in *smb.RemoveSMBGlobalMappingRequest) (*smb.RemoveSMBGlobalMappingResponse, error) {
	return record(f.recorder, in, &smb.RemoveSMBGlobalMappingResponse{})
}

type fakeSystem struct{ *recorder }

func (f fakeSystem) GetBIOSSerialNumber(_ context.Context, in *system.GetBIOSSerialNumberRequest) (*system.GetBIOSSerialNumberResponse, error) {
	return record(f.recorder, in, &system.GetBIOSSerialNumberResponse{SerialNumber: "VMware-42\xff"})
}

func (f fakeSystem) GetService(_ context.Context, in *system.GetServiceRequest) (*system.GetServiceResponse, error) {
	return record(f.recorder, in, &system.GetServiceResponse{
		DisplayName: "iSCSI", StartType: system.START_TYPE_DISABLED, Status: system.SERVICE_STATUS_PAUSED,
	})
}

func (f fakeSystem) StartService(_ context.Context, in *system.StartServiceRequest) (*system.StartServiceResponse, error) {
	return record(f.recorder, in, &system.StartServiceResponse{})
}

func (f fakeSystem) StopService(_ context.Context, in *system.StopServiceRequest) (*system.StopServiceResponse, error) {
	return record(f.recorder, in, &system.StopServiceResponse{})
}

type fakeVolume struct {
	volume.Extended // nil: no test calls the rest
	*recorder
}

func (f fakeVolume) FormatVolume(_ context.Context, in *volume.FormatVolumeRequest) (*volume.FormatVolumeResponse, error) {
	return record(f.recorder, in, &volume.FormatVolumeResponse{})
}

func (f fakeVolume) GetClosestVolumeIDFromTargetPath(_ context.Context, in *volume.GetClosestVolumeIDFromTargetPathRequest) (*volume.GetClosestVolumeIDFromTargetPathResponse, error) {
	return record(f.recorder, in, &volume.GetClosestVolumeIDFromTargetPathResponse{VolumeID: "V2"})
}

func (f fakeVolume) GetDiskNumberFromVolumeID(_ context.Context, in *volume.GetDiskNumberFromVolumeIDRequest) (*volume.GetDiskNumberFromVolumeIDResponse, error) {
	return record(f.recorder, in, &volume.GetDiskNumberFromVolumeIDResponse{DiskNumber: 4294967295})
}

func (f fakeVolume) GetVolumeIDFromTargetPath(_ context.Context, in *volume.GetVolumeIDFromTargetPathRequest) (*volume.GetVolumeIDFromTargetPathResponse, error) {
	return record(f.recorder, in, &volume.GetVolumeIDFromTargetPathResponse{VolumeID: "V1"})
}

func (f fakeVolume) GetVolumeStats(_ context.Context, in *volume.GetVolumeStatsRequest) (*volume.GetVolumeStatsResponse, error) {
	return record(f.recorder, in, &volume.GetVolumeStatsResponse{TotalBytes: 1 << 40, UsedBytes: 1 << 33})
}

func (f fakeVolume) IsVolumeFormatted(_ context.Context, in *volume.IsVolumeFormattedRequest) (*volume.IsVolumeFormattedResponse, error) {
	return record(f.recorder, in, &volume.IsVolumeFormattedResponse{Formatted: true})
}

func (f fakeVolume) ListVolumesOnDisk(_ context.Context, in *volume.ListVolumesOnDiskRequest) (*volume.ListVolumesOnDiskResponse, error) {
	return record(f.recorder, in, &volume.ListVolumesOnDiskResponse{VolumeIDs: []string{"V1", "V2"}})
}

func (f fakeVolume) MountVolume(_ context.Context, in *volume.MountVolumeRequest) (*volume.MountVolumeResponse, error) {
	return record(f.recorder, in, &volume.MountVolumeResponse{})
}

func (f fakeVolume) ResizeVolume(_ context.Context, in *volume.ResizeVolumeRequest) (*volume.ResizeVolumeResponse, error) {
	return record(f.recorder, in, &volume.ResizeVolumeResponse{})
}

func (f fakeVolume) UnmountVolume(_ context.Context, in *volume.UnmountVolumeRequest) (*volume.UnmountVolumeResponse, error) {
	return record(f.recorder, in, &volume.UnmountVolumeResponse{})
}

func (f fakeVolume) WriteVolumeCache(_ context.Context, in *volume.WriteVolumeCacheRequest) (*volume.WriteVolumeCacheResponse, error) {
	return record(f.recorder, in, &volume.WriteVolumeCacheResponse{})
}
