package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"google.golang.org/protobuf/types/known/emptypb"

	diskv1 "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
)

type disks struct {
	*Daemon
	api diskv1.DiskClient
}

var _ disk.Extended = disks{}

func (d disks) GetDiskState(ctx context.Context, in *disk.GetDiskStateRequest) (*disk.GetDiskStateResponse, error) {
	return ask[disk.GetDiskStateResponse](ctx, d.api.GetDiskState, in)
}

func (d disks) GetDiskStats(ctx context.Context, in *disk.GetDiskStatsRequest) (*disk.GetDiskStatsResponse, error) {
	return ask[disk.GetDiskStatsResponse](ctx, d.api.GetDiskStats, in)
}

func (d disks) ListDiskIDs(ctx context.Context, in *disk.ListDiskIDsRequest) (*disk.ListDiskIDsResponse, error) {
	return ask[disk.ListDiskIDsResponse](ctx, d.api.ListDiskIDs, in)
}

func (d disks) ListDiskLocations(ctx context.Context, in *disk.ListDiskLocationsRequest) (*disk.ListDiskLocationsResponse, error) {
	return ask[disk.ListDiskLocationsResponse](ctx, d.api.ListDiskLocations, in)
}

func (d disks) Rescan(ctx context.Context, in *disk.RescanRequest) (*disk.RescanResponse, error) {
	return ask[disk.RescanResponse](ctx, d.api.Rescan, in)
}

func (d disks) PartitionDisk(ctx context.Context, in *disk.PartitionDiskRequest) (*disk.PartitionDiskResponse, error) {
	if in != nil && in.MustBe != (disk.MustBe{}) {
		if done, err := d.change(ctx, extensionv1.NewDiskChangeClient(d.disks).PartitionDisk, meant(in.DiskNumber, in.MustBe), in.MustBe); done {
			return &disk.PartitionDiskResponse{}, err
		}
		in = &disk.PartitionDiskRequest{DiskNumber: in.DiskNumber}
	}
	return ask[disk.PartitionDiskResponse](ctx, d.api.PartitionDisk, in)
}

func (d disks) SetDiskState(ctx context.Context, in *disk.SetDiskStateRequest) (*disk.SetDiskStateResponse, error) {
	if in != nil && in.MustBe != (disk.MustBe{}) {
		request := meant(in.DiskNumber, in.MustBe)
		request.Online = &in.IsOnline
		if done, err := d.change(ctx, extensionv1.NewDiskChangeClient(d.disks).SetDiskState, request, in.MustBe); done {
			return &disk.SetDiskStateResponse{}, err
		}
		in = &disk.SetDiskStateRequest{DiskNumber: in.DiskNumber, IsOnline: in.IsOnline}
	}
	return ask[disk.SetDiskStateResponse](ctx, d.api.SetDiskState, in)
}

// change asks the extension, which checks the disk at the change itself. It reports false if the daemon does not have that
// and the disk is the one that is meant.
func (d disks) change(
	ctx context.Context, call method[extensionv1.Disk, emptypb.Empty], request *extensionv1.Disk, mustBe disk.MustBe,
) (done bool, err error) {
	if _, err = call(ctx, request); !isUnsupported(err) {
		return true, err
	}
	err = d.confirm(ctx, request.GetNumber(), mustBe)
	return err != nil, err
}

// confirm fails if another disk has the number. A daemon that does not know what a disk must be is asked before each
// change: what happens in between is not seen.
func (d disks) confirm(ctx context.Context, number uint32, mustBe disk.MustBe) (err error) {
	at := number
	switch {
	case mustBe.VolumeID != "":
		var on *volume.GetDiskNumberFromVolumeIDResponse
		on, err = d.Volume().GetDiskNumberFromVolumeID(ctx, &volume.GetDiskNumberFromVolumeIDRequest{VolumeID: mustBe.VolumeID})
		at = on.DiskNumber
	case mustBe != disk.MustBe{}:
		_, err = machine{d.Daemon}.findListed(ctx, nodeapi.Query{Number: &number, Serial: mustBe.Serial, Page83: mustBe.Page83}, nil)
	}
	if err == nil && at != number || errors.Is(err, fs.ErrNotExist) {
		return failed(failure.Busy, "look at", diskName(number), "another disk has the number now; find the disk again by its ids")
	}
	return err
}

// meant is a disk as a request of the extensions.
func meant(number uint32, mustBe disk.MustBe) *extensionv1.Disk {
	request := &extensionv1.Disk{Number: &number}
	if mustBe != (disk.MustBe{}) {
		request.MustBe = &extensionv1.MustBe{Device: mustBe.Device, SerialNumber: mustBe.Serial, Page83: mustBe.Page83, VolumeId: mustBe.VolumeID, MountPath: mustBe.Path}
	}
	return request
}

func (d disks) GetDiskReadOnly(ctx context.Context, in *disk.GetDiskReadOnlyRequest) (*disk.GetDiskReadOnlyResponse, error) {
	if in == nil {
		return &disk.GetDiskReadOnlyResponse{}, errNoRequest
	}
	response, err := extended(ctx, extensionv1.NewDiskReadOnlyClient(d.disks).GetDiskReadOnly,
		meant(in.DiskNumber, in.MustBe), missing{"get read-only state of", diskName(in.DiskNumber), "GetDiskReadOnly", ""})
	if isUnsupported(err) {
		if another := d.confirm(ctx, in.DiskNumber, in.MustBe); another != nil {
			err = another
		}
	}
	return &disk.GetDiskReadOnlyResponse{IsReadOnly: response.GetReadOnly()}, err
}

func (d disks) SetDiskReadOnly(ctx context.Context, in *disk.SetDiskReadOnlyRequest) (*disk.SetDiskReadOnlyResponse, error) {
	if in == nil {
		return &disk.SetDiskReadOnlyResponse{}, errNoRequest
	}
	request := meant(in.DiskNumber, in.MustBe)
	request.ReadOnly = &in.IsReadOnly
	return &disk.SetDiskReadOnlyResponse{}, d.setReadOnly(ctx, "set read-only state of", request)
}

func (d disks) OnlineDiskReadOnly(ctx context.Context, in *disk.OnlineDiskReadOnlyRequest) (*disk.OnlineDiskReadOnlyResponse, error) {
	if in == nil {
		return &disk.OnlineDiskReadOnlyResponse{}, errNoRequest
	}
	yes, request := true, meant(in.DiskNumber, in.MustBe)
	request.ReadOnly, request.Online = &yes, &yes
	return &disk.OnlineDiskReadOnlyResponse{}, d.setReadOnly(ctx, "bring online read-only", request)
}

func (d disks) setReadOnly(ctx context.Context, op string, request *extensionv1.Disk) error {
	_, err := extended(ctx, extensionv1.NewDiskReadOnlyClient(d.disks).SetDiskReadOnly,
		request, missing{op, diskName(request.GetNumber()), "the option ReadOnly", omitOption})
	return err
}

func diskName(number uint32) string { return fmt.Sprintf("disk %d", number) }
