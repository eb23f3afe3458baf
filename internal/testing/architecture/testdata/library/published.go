package main

import (
	"context"
	"regexp"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fs "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/smb"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// What drivers compile against, as it was published. Structures may get more fields. Interfaces
// may not get more methods, since fakes that drivers have written would lack them.

type (
	diskMethods interface {
		GetDiskState(context.Context, *disk.GetDiskStateRequest) (*disk.GetDiskStateResponse, error)
		GetDiskStats(context.Context, *disk.GetDiskStatsRequest) (*disk.GetDiskStatsResponse, error)
		ListDiskIDs(context.Context, *disk.ListDiskIDsRequest) (*disk.ListDiskIDsResponse, error)
		ListDiskLocations(context.Context, *disk.ListDiskLocationsRequest) (*disk.ListDiskLocationsResponse, error)
		PartitionDisk(context.Context, *disk.PartitionDiskRequest) (*disk.PartitionDiskResponse, error)
		Rescan(context.Context, *disk.RescanRequest) (*disk.RescanResponse, error)
		SetDiskState(context.Context, *disk.SetDiskStateRequest) (*disk.SetDiskStateResponse, error)
	}
	diskHost interface {
		ListDiskLocations() (map[uint32]diskapi.DiskLocation, error)
		IsDiskInitialized(diskNumber uint32) (bool, error)
		InitializeDisk(diskNumber uint32) error
		BasicPartitionsExist(diskNumber uint32) (bool, error)
		CreateBasicPartition(diskNumber uint32) error
		Rescan() error
		ListDiskIDs() (map[uint32]diskapi.DiskIDs, error)
		GetDiskStats(diskNumber uint32) (int64, error)
		SetDiskState(diskNumber uint32, isOnline bool) error
		GetDiskState(diskNumber uint32) (bool, error)
	}
)

var (
	_ diskMethods     = (*disk.Disk)(nil)
	_ diskMethods     = disk.Interface(nil)
	_ disk.Interface  = diskMethods(nil)
	_ diskHost        = diskapi.HostAPI(nil)
	_ diskapi.HostAPI = diskHost(nil)

	_ = disk.DiskIDs{Page83: string(""), SerialNumber: string("")}
	_ = disk.DiskLocation{Adapter: string(""), Bus: string(""), Target: string(""), LUNID: string("")}
	_ = disk.GetDiskStateRequest{DiskNumber: uint32(0)}
	_ = disk.GetDiskStateResponse{IsOnline: bool(false)}
	_ = disk.GetDiskStatsRequest{DiskNumber: uint32(0)}
	_ = disk.GetDiskStatsResponse{TotalBytes: int64(0)}
	_ = disk.ListDiskIDsRequest{}
	_ = disk.ListDiskIDsResponse{DiskIDs: map[uint32]*disk.DiskIDs(nil)}
	_ = disk.ListDiskLocationsRequest{}
	_ = disk.ListDiskLocationsResponse{DiskLocations: map[uint32]*disk.DiskLocation(nil)}
	_ = disk.PartitionDiskRequest{DiskNumber: uint32(0)}
	_ = disk.PartitionDiskResponse{}
	_ = disk.RescanRequest{}
	_ = disk.RescanResponse{}
	_ = disk.SetDiskStateRequest{DiskNumber: uint32(0), IsOnline: bool(false)}
	_ = disk.SetDiskStateResponse{}
	_ = diskapi.DiskIDs{Page83: string(""), SerialNumber: string("")}
	_ = diskapi.DiskLocation{Adapter: string(""), Bus: string(""), Target: string(""), LUNID: string("")}
)

type (
	filesystemMethods interface {
		CreateSymlink(context.Context, *fs.CreateSymlinkRequest) (*fs.CreateSymlinkResponse, error)
		IsSymlink(context.Context, *fs.IsSymlinkRequest) (*fs.IsSymlinkResponse, error)
		Mkdir(context.Context, *fs.MkdirRequest) (*fs.MkdirResponse, error)
		PathExists(context.Context, *fs.PathExistsRequest) (*fs.PathExistsResponse, error)
		PathValid(context.Context, *fs.PathValidRequest) (*fs.PathValidResponse, error)
		Rmdir(context.Context, *fs.RmdirRequest) (*fs.RmdirResponse, error)
		RmdirContents(context.Context, *fs.RmdirContentsRequest) (*fs.RmdirContentsResponse, error)
	}
	filesystemHost interface {
		PathExists(path string) (bool, error)
		PathValid(path string) (bool, error)
		Mkdir(path string) error
		Rmdir(path string, force bool) error
		RmdirContents(path string) error
		CreateSymlink(oldname string, newname string) error
		IsSymlink(path string) (bool, error)
	}
)

var (
	_ filesystemMethods = (*fs.Filesystem)(nil)
	_ filesystemMethods = fs.Interface(nil)
	_ fs.Interface      = filesystemMethods(nil)
	_ filesystemHost    = fsapi.HostAPI(nil)
	_ fsapi.HostAPI     = filesystemHost(nil)

	_ = fs.CreateSymlinkRequest{SourcePath: string(""), TargetPath: string("")}
	_ = fs.CreateSymlinkResponse{}
	_ = fs.IsSymlinkRequest{Path: string("")}
	_ = fs.IsSymlinkResponse{IsSymlink: bool(false)}
	_ = fs.MkdirRequest{Path: string("")}
	_ = fs.MkdirResponse{}
	_ = fs.PathExistsRequest{Path: string("")}
	_ = fs.PathExistsResponse{Exists: bool(false)}
	_ = fs.PathValidRequest{Path: string("")}
	_ = fs.PathValidResponse{Valid: bool(false)}
	_ = fs.RmdirContentsRequest{Path: string("")}
	_ = fs.RmdirContentsResponse{}
	_ = fs.RmdirRequest{Path: string(""), Force: bool(false)}
	_ = fs.RmdirResponse{}

	_ func(string) error = fs.ValidatePathWindows
)

type (
	iscsiMethods interface {
		AddTargetPortal(context.Context, *iscsi.AddTargetPortalRequest) (*iscsi.AddTargetPortalResponse, error)
		ConnectTarget(context.Context, *iscsi.ConnectTargetRequest) (*iscsi.ConnectTargetResponse, error)
		DisconnectTarget(context.Context, *iscsi.DisconnectTargetRequest) (*iscsi.DisconnectTargetResponse, error)
		DiscoverTargetPortal(context.Context, *iscsi.DiscoverTargetPortalRequest) (*iscsi.DiscoverTargetPortalResponse, error)
		GetTargetDisks(context.Context, *iscsi.GetTargetDisksRequest) (*iscsi.GetTargetDisksResponse, error)
		ListTargetPortals(context.Context, *iscsi.ListTargetPortalsRequest) (*iscsi.ListTargetPortalsResponse, error)
		RemoveTargetPortal(context.Context, *iscsi.RemoveTargetPortalRequest) (*iscsi.RemoveTargetPortalResponse, error)
		SetMutualChapSecret(context.Context, *iscsi.SetMutualChapSecretRequest) (*iscsi.SetMutualChapSecretResponse, error)
	}
	iscsiHost interface {
		AddTargetPortal(portal *iscsiapi.TargetPortal) error
		DiscoverTargetPortal(portal *iscsiapi.TargetPortal) ([]string, error)
		ListTargetPortals() ([]iscsiapi.TargetPortal, error)
		RemoveTargetPortal(portal *iscsiapi.TargetPortal) error
		ConnectTarget(portal *iscsiapi.TargetPortal, iqn string, authType string, chapUser string, chapSecret string) error
		DisconnectTarget(portal *iscsiapi.TargetPortal, iqn string) error
		GetTargetDisks(portal *iscsiapi.TargetPortal, iqn string) ([]string, error)
		SetMutualChapSecret(mutualChapSecret string) error
	}
)

var (
	_ iscsiMethods     = (*iscsi.ISCSI)(nil)
	_ iscsiMethods     = iscsi.Interface(nil)
	_ iscsi.Interface  = iscsiMethods(nil)
	_ iscsiHost        = iscsiapi.HostAPI(nil)
	_ iscsiapi.HostAPI = iscsiHost(nil)

	_ = iscsi.AddTargetPortalRequest{TargetPortal: (*iscsi.TargetPortal)(nil)}
	_ = iscsi.AddTargetPortalResponse{}
	_ = iscsi.ConnectTargetRequest{TargetPortal: (*iscsi.TargetPortal)(nil), IQN: string(""), AuthType: iscsi.AuthenticationType(0), ChapUsername: string(""), ChapSecret: string("")}
	_ = iscsi.ConnectTargetResponse{}
	_ = iscsi.DisconnectTargetRequest{TargetPortal: (*iscsi.TargetPortal)(nil), IQN: string("")}
	_ = iscsi.DisconnectTargetResponse{}
	_ = iscsi.DiscoverTargetPortalRequest{TargetPortal: (*iscsi.TargetPortal)(nil)}
	_ = iscsi.DiscoverTargetPortalResponse{IQNs: []string(nil)}
	_ = iscsi.GetTargetDisksRequest{TargetPortal: (*iscsi.TargetPortal)(nil), IQN: string("")}
	_ = iscsi.GetTargetDisksResponse{DiskIDs: []string(nil)}
	_ = iscsi.ListTargetPortalsRequest{}
	_ = iscsi.ListTargetPortalsResponse{TargetPortals: []*iscsi.TargetPortal(nil)}
	_ = iscsi.RemoveTargetPortalRequest{TargetPortal: (*iscsi.TargetPortal)(nil)}
	_ = iscsi.RemoveTargetPortalResponse{}
	_ = iscsi.SetMutualChapSecretRequest{MutualChapSecret: string("")}
	_ = iscsi.SetMutualChapSecretResponse{}
	_ = iscsi.TargetPortal{TargetAddress: string(""), TargetPort: uint32(0)}
	_ = iscsiapi.TargetPortal{Address: string(""), Port: uint32(0)}

	_ func(iscsi.AuthenticationType) (string, error) = iscsi.AuthTypeToString
)

// The numbers of constants are published, too: a constant that changes is not an index.
var (
	_ = [1]iscsi.AuthenticationType{iscsi.NONE}[iscsi.NONE-0]
	_ = [1]iscsi.AuthenticationType{iscsi.ONE_WAY_CHAP}[iscsi.ONE_WAY_CHAP-1]
	_ = [1]iscsi.AuthenticationType{iscsi.MUTUAL_CHAP}[iscsi.MUTUAL_CHAP-2]
)

type (
	smbMethods interface {
		NewSMBGlobalMapping(context.Context, *smb.NewSMBGlobalMappingRequest) (*smb.NewSMBGlobalMappingResponse, error)
		RemoveSMBGlobalMapping(context.Context, *smb.RemoveSMBGlobalMappingRequest) (*smb.RemoveSMBGlobalMappingResponse, error)
	}
	smbHost interface {
		IsSMBMapped(remotePath string) (bool, error)
		NewSMBLink(remotePath, localPath string) error
		NewSMBGlobalMapping(remotePath, username, password string) error
		RemoveSMBGlobalMapping(remotePath string) error
	}
)

var (
	_ smbMethods     = (*smb.SMB)(nil)
	_ smbMethods     = smb.Interface(nil)
	_ smb.Interface  = smbMethods(nil)
	_ smbHost        = smbapi.HostAPI(nil)
	_ smbapi.HostAPI = smbHost(nil)

	_ = smb.NewSMBGlobalMappingRequest{RemotePath: string(""), LocalPath: string(""), Username: string(""), Password: string("")}
	_ = smb.NewSMBGlobalMappingResponse{}
	_ = smb.RemoveSMBGlobalMappingRequest{RemotePath: string("")}
	_ = smb.RemoveSMBGlobalMappingResponse{}
)

type (
	systemMethods interface {
		GetBIOSSerialNumber(context.Context, *system.GetBIOSSerialNumberRequest) (*system.GetBIOSSerialNumberResponse, error)
		GetService(context.Context, *system.GetServiceRequest) (*system.GetServiceResponse, error)
		StartService(context.Context, *system.StartServiceRequest) (*system.StartServiceResponse, error)
		StopService(context.Context, *system.StopServiceRequest) (*system.StopServiceResponse, error)
	}
	systemHost interface {
		GetBIOSSerialNumber() (string, error)
		GetService(name string) (*systemapi.ServiceInfo, error)
		StartService(name string) error
		StopService(name string, force bool) error
	}
)

var (
	_ systemMethods     = (*system.System)(nil)
	_ systemMethods     = system.Interface(nil)
	_ system.Interface  = systemMethods(nil)
	_ systemHost        = systemapi.HostAPI(nil)
	_ systemapi.HostAPI = systemHost(nil)

	_ = system.GetBIOSSerialNumberRequest{}
	_ = system.GetBIOSSerialNumberResponse{SerialNumber: string("")}
	_ = system.GetServiceRequest{Name: string("")}
	_ = system.GetServiceResponse{DisplayName: string(""), StartType: system.StartType(0), Status: system.ServiceStatus(0)}
	_ = system.StartServiceRequest{Name: string("")}
	_ = system.StartServiceResponse{}
	_ = system.StopServiceRequest{Name: string(""), Force: bool(false)}
	_ = system.StopServiceResponse{}
	_ = systemapi.ServiceInfo{DisplayName: string(""), StartType: string(""), Status: string("")}
)

var (
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_UNKNOWN}[system.SERVICE_STATUS_UNKNOWN-0]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_STOPPED}[system.SERVICE_STATUS_STOPPED-1]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_START_PENDING}[system.SERVICE_STATUS_START_PENDING-2]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_STOP_PENDING}[system.SERVICE_STATUS_STOP_PENDING-3]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_RUNNING}[system.SERVICE_STATUS_RUNNING-4]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_CONTINUE_PENDING}[system.SERVICE_STATUS_CONTINUE_PENDING-5]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_PAUSE_PENDING}[system.SERVICE_STATUS_PAUSE_PENDING-6]
	_ = [1]system.ServiceStatus{system.SERVICE_STATUS_PAUSED}[system.SERVICE_STATUS_PAUSED-7]
	_ = [1]system.StartType{system.START_TYPE_BOOT}[system.START_TYPE_BOOT-0]
	_ = [1]system.StartType{system.START_TYPE_SYSTEM}[system.START_TYPE_SYSTEM-1]
	_ = [1]system.StartType{system.START_TYPE_AUTOMATIC}[system.START_TYPE_AUTOMATIC-2]
	_ = [1]system.StartType{system.START_TYPE_MANUAL}[system.START_TYPE_MANUAL-3]
	_ = [1]system.StartType{system.START_TYPE_DISABLED}[system.START_TYPE_DISABLED-4]
)

type (
	volumeMethods interface {
		FormatVolume(context.Context, *volume.FormatVolumeRequest) (*volume.FormatVolumeResponse, error)
		GetClosestVolumeIDFromTargetPath(context.Context, *volume.GetClosestVolumeIDFromTargetPathRequest) (*volume.GetClosestVolumeIDFromTargetPathResponse, error)
		GetDiskNumberFromVolumeID(context.Context, *volume.GetDiskNumberFromVolumeIDRequest) (*volume.GetDiskNumberFromVolumeIDResponse, error)
		GetVolumeIDFromTargetPath(context.Context, *volume.GetVolumeIDFromTargetPathRequest) (*volume.GetVolumeIDFromTargetPathResponse, error)
		GetVolumeStats(context.Context, *volume.GetVolumeStatsRequest) (*volume.GetVolumeStatsResponse, error)
		IsVolumeFormatted(context.Context, *volume.IsVolumeFormattedRequest) (*volume.IsVolumeFormattedResponse, error)
		ListVolumesOnDisk(context.Context, *volume.ListVolumesOnDiskRequest) (*volume.ListVolumesOnDiskResponse, error)
		MountVolume(context.Context, *volume.MountVolumeRequest) (*volume.MountVolumeResponse, error)
		ResizeVolume(context.Context, *volume.ResizeVolumeRequest) (*volume.ResizeVolumeResponse, error)
		UnmountVolume(context.Context, *volume.UnmountVolumeRequest) (*volume.UnmountVolumeResponse, error)
		WriteVolumeCache(context.Context, *volume.WriteVolumeCacheRequest) (*volume.WriteVolumeCacheResponse, error)
	}
	volumeHost interface {
		ListVolumesOnDisk(diskNumber uint32, partitionNumber uint32) (volumeIDs []string, err error)
		MountVolume(volumeID, targetPath string) error
		UnmountVolume(volumeID, targetPath string) error
		IsVolumeFormatted(volumeID string) (bool, error)
		FormatVolume(volumeID string) error
		ResizeVolume(volumeID string, sizeBytes int64) error
		GetVolumeStats(volumeID string) (int64, int64, error)
		GetDiskNumberFromVolumeID(volumeID string) (uint32, error)
		GetVolumeIDFromTargetPath(targetPath string) (string, error)
		WriteVolumeCache(volumeID string) error
		GetClosestVolumeIDFromTargetPath(targetPath string) (string, error)
	}
)

var (
	_ volumeMethods     = (*volume.Volume)(nil)
	_ volumeMethods     = volume.Interface(nil)
	_ volume.Interface  = volumeMethods(nil)
	_ volumeHost        = volumeapi.HostAPI(nil)
	_ volumeapi.HostAPI = volumeHost(nil)

	_ = volume.FormatVolumeRequest{VolumeID: string("")}
	_ = volume.FormatVolumeResponse{}
	_ = volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: string("")}
	_ = volume.GetClosestVolumeIDFromTargetPathResponse{VolumeID: string("")}
	_ = volume.GetDiskNumberFromVolumeIDRequest{VolumeID: string("")}
	_ = volume.GetDiskNumberFromVolumeIDResponse{DiskNumber: uint32(0)}
	_ = volume.GetVolumeIDFromTargetPathRequest{TargetPath: string("")}
	_ = volume.GetVolumeIDFromTargetPathResponse{VolumeID: string("")}
	_ = volume.GetVolumeStatsRequest{VolumeID: string("")}
	_ = volume.GetVolumeStatsResponse{TotalBytes: int64(0), UsedBytes: int64(0)}
	_ = volume.IsVolumeFormattedRequest{VolumeID: string("")}
	_ = volume.IsVolumeFormattedResponse{Formatted: bool(false)}
	_ = volume.ListVolumesOnDiskRequest{DiskNumber: uint32(0), PartitionNumber: uint32(0)}
	_ = volume.ListVolumesOnDiskResponse{VolumeIDs: []string(nil)}
	_ = volume.MountVolumeRequest{VolumeID: string(""), TargetPath: string("")}
	_ = volume.MountVolumeResponse{}
	_ = volume.ResizeVolumeRequest{VolumeID: string(""), SizeBytes: int64(0)}
	_ = volume.ResizeVolumeResponse{}
	_ = volume.UnmountVolumeRequest{VolumeID: string(""), TargetPath: string("")}
	_ = volume.UnmountVolumeResponse{}
	_ = volume.WriteVolumeCacheRequest{VolumeID: string("")}
	_ = volume.WriteVolumeCacheResponse{}

	_ *regexp.Regexp = volumeapi.VolumeRegexp
)
