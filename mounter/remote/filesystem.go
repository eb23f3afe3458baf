package remote

import (
	"context"

	filesystemv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

type files struct {
	*Daemon
	api filesystemv2alpha1.FilesystemClient
}

var _ filesystem.Extended = files{}

func (f files) CreateSymlink(ctx context.Context, in *filesystem.CreateSymlinkRequest) (*filesystem.CreateSymlinkResponse, error) {
	return ask[filesystem.CreateSymlinkResponse](ctx, f.api.CreateSymlink, in)
}

func (f files) IsSymlink(ctx context.Context, in *filesystem.IsSymlinkRequest) (*filesystem.IsSymlinkResponse, error) {
	return ask[filesystem.IsSymlinkResponse](ctx, f.api.IsSymlink, in)
}

func (f files) Mkdir(ctx context.Context, in *filesystem.MkdirRequest) (*filesystem.MkdirResponse, error) {
	return ask[filesystem.MkdirResponse](ctx, f.api.Mkdir, in)
}

func (f files) PathExists(ctx context.Context, in *filesystem.PathExistsRequest) (*filesystem.PathExistsResponse, error) {
	return ask[filesystem.PathExistsResponse](ctx, f.api.PathExists, in)
}

func (files) PathValid(context.Context, *filesystem.PathValidRequest) (*filesystem.PathValidResponse, error) {
	return &filesystem.PathValidResponse{}, failed(failure.Unsupported, "call daemon", "", "its API has no PathValid; use PathExists or GetPathStats")
}

func (f files) Rmdir(ctx context.Context, in *filesystem.RmdirRequest) (*filesystem.RmdirResponse, error) {
	return ask[filesystem.RmdirResponse](ctx, f.api.Rmdir, in)
}

func (f files) RmdirContents(ctx context.Context, in *filesystem.RmdirContentsRequest) (*filesystem.RmdirContentsResponse, error) {
	return ask[filesystem.RmdirContentsResponse](ctx, f.api.RmdirContents, in)
}

func (f files) GetPathStats(ctx context.Context, in *filesystem.GetPathStatsRequest) (*filesystem.GetPathStatsResponse, error) {
	if in == nil {
		return &filesystem.GetPathStatsResponse{}, errNoRequest
	}
	space, err := extended(ctx, extensionv1.NewPathsClient(f.files).GetPathStats, &extensionv1.Path{Path: in.Path},
		missing{"measure share at", in.Path, "a service for it", ""})
	total, available := space.GetTotalBytes(), space.GetAvailableBytes()
	return &filesystem.GetPathStatsResponse{TotalBytes: total, UsedBytes: total - available, AvailableBytes: available}, err
}

func (f files) SetRecord(ctx context.Context, in *filesystem.SetRecordRequest) (*filesystem.SetRecordResponse, error) {
	if in == nil {
		return &filesystem.SetRecordResponse{}, errNoRequest
	}
	_, err := extended(ctx, extensionv1.NewPathsClient(f.files).SetRecord, &extensionv1.Record{Path: in.Path, Text: in.Record},
		missing{"keep record of", in.Path, "a service for it", ""})
	return &filesystem.SetRecordResponse{}, err
}

func (f files) GetRecord(ctx context.Context, in *filesystem.GetRecordRequest) (*filesystem.GetRecordResponse, error) {
	if in == nil {
		return &filesystem.GetRecordResponse{}, errNoRequest
	}
	found, err := extended(ctx, extensionv1.NewPathsClient(f.files).GetRecord, &extensionv1.Path{Path: in.Path},
		missing{"read record of", in.Path, "a service for it", ""})
	return &filesystem.GetRecordResponse{Record: found.GetText(), Problem: found.GetProblem()}, err
}

func (f files) ListDirectory(ctx context.Context, in *filesystem.ListDirectoryRequest) (*filesystem.ListDirectoryResponse, error) {
	if in == nil {
		return &filesystem.ListDirectoryResponse{}, errNoRequest
	}
	found, err := extended(ctx, extensionv1.NewPathsClient(f.files).ListDirectory, &extensionv1.Path{Path: in.Path},
		missing{"list", in.Path, "a service for it", ""})
	out := &filesystem.ListDirectoryResponse{Truncated: found.GetTruncated()}
	for _, e := range found.GetEntries() {
		out.Entries = append(out.Entries, fsapi.DirectoryEntry{Name: e.Name, Type: fsapi.EntryType(e.Type), Target: e.Target})
	}
	return out, err
}
