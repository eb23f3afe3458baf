// Package disk is the library's view of the disks of a Windows node: list them,
// tell them apart, partition a new one, switch one on and off, ask its size.
//
// It works on whole disks, named by the number Windows gives them. File systems
// and mount points belong to package volume. Disk numbers are not stable: they
// may change when the node restarts or a disk is replugged, so look a disk up by
// its ids or its location first and use the number at once.
//
// Start with New and the host of this machine:
//
//	disks, err := disk.New(diskapi.New())
//
// On systems other than Windows that host fails with errors.ErrUnsupported; a host of your own works everywhere.
//
// A Disk is safe for concurrent use if its host is; the host of this machine is.
// Every method may be repeated: a driver that lost an answer asks again.
package disk

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
)

// Interface is what a driver can ask about disks: what was published, and what the
// original has merged since (its #438). Errors match those of the standard library: fs.ErrNotExist for a disk that is not there,
// fs.ErrPermission for what must not be done to the disk of Windows, fs.ErrInvalid
// for a wrong request, context.DeadlineExceeded when Windows took too long or the
// context ended.
//
// A call whose context ends returns at once. A change that has begun goes on. Ask for
// it again to see how it ended.
type Interface interface {
	// GetDiskState reports whether a disk is online.
	GetDiskState(context.Context, *GetDiskStateRequest) (*GetDiskStateResponse, error)

	// GetDiskStats returns the size of a disk, offline or not. After the disk has
	// grown the new size may take a Rescan to show.
	GetDiskStats(context.Context, *GetDiskStatsRequest) (*GetDiskStatsResponse, error)

	// ListDiskIDs returns what identifies each disk, by disk number. A disk that
	// does not answer is left out, so that it does not keep others from being
	// found.
	ListDiskIDs(context.Context, *ListDiskIDsRequest) (*ListDiskIDsResponse, error)

	// ListDiskLocations returns where each disk is attached, by disk number.
	// Disks that are files on another disk are attached nowhere and left out, as
	// is a disk that does not answer.
	ListDiskLocations(context.Context, *ListDiskLocationsRequest) (*ListDiskLocationsResponse, error)

	// PartitionDisk gives an empty disk a partition table and one basic
	// partition over all of it, and waits until Windows has made a volume of it.
	// The disk is online afterwards.
	//
	// A disk that has partitions is not written to, and the call succeeds when
	// their volumes are there. It refuses the disk of Windows, a disk that is
	// neither partitioned nor empty, and one of whose partitions Windows makes
	// no volume, as on a disk of Linux.
	PartitionDisk(context.Context, *PartitionDiskRequest) (*PartitionDiskResponse, error)

	// Rescan makes Windows look for disks that came, went or changed size, and
	// waits until it has.
	Rescan(context.Context, *RescanRequest) (*RescanResponse, error)

	// SetDiskState brings a disk online or takes it offline, and returns when it has. A disk
	// that already is in the wanted state stays in it, and the call succeeds. A
	// disk that was offline and read-only becomes writable, too, and its volumes
	// are there when the call returns. The disk of Windows is not taken offline.
	SetDiskState(context.Context, *SetDiskStateRequest) (*SetDiskStateResponse, error)

	// SetDiskReadOnly makes a disk read-only or writable, online or offline, and returns when it is. A disk that already is
	// in the wanted state stays in it, and the call succeeds.
	SetDiskReadOnly(context.Context, *SetDiskReadOnlyRequest) (*SetDiskReadOnlyResponse, error)

	// GetDiskReadOnly reports whether a disk is read-only, online or not.
	GetDiskReadOnly(context.Context, *GetDiskReadOnlyRequest) (*GetDiskReadOnlyResponse, error)
}

// Extended is Interface with what only we have: implementations that drivers have of that still compile.
type Extended interface {
	Interface

	// OnlineDiskReadOnly brings a disk online so that no file system on it is ever mounted for writing, and waits for its
	// volumes. A writable disk that is online goes offline first, which takes its volumes away for a moment.
	OnlineDiskReadOnly(context.Context, *OnlineDiskReadOnlyRequest) (*OnlineDiskReadOnlyResponse, error)
}

var _ Extended = (*Disk)(nil)

// Disk implements Extended over a host.
type Disk struct {
	host diskapi.HostAPI
}

// New returns a Disk that works on the given host, which must not be nil.
func New(hostAPI diskapi.HostAPI) (*Disk, error) {
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, "open disk library", "", "the host API is nil")
	}
	return &Disk{host: hostAPI}, nil
}

// GetDiskState implements Interface.
func (d *Disk) GetDiskState(ctx context.Context, request *GetDiskStateRequest) (*GetDiskStateResponse, error) {
	return hostctx.Do(ctx, "get state of a disk", d.host, request, func(h diskapi.HostAPI, out *GetDiskStateResponse) (err error) {
		out.IsOnline, err = h.GetDiskState(request.DiskNumber)
		return winerr.Wrap("get state of", object(request.DiskNumber), err)
	})
}

// GetDiskStats implements Interface.
func (d *Disk) GetDiskStats(ctx context.Context, request *GetDiskStatsRequest) (*GetDiskStatsResponse, error) {
	return hostctx.Do(ctx, "get size of a disk", d.host, request, func(h diskapi.HostAPI, out *GetDiskStatsResponse) (err error) {
		out.TotalBytes, err = h.GetDiskStats(request.DiskNumber)
		return winerr.Wrap("get size of", object(request.DiskNumber), err)
	})
}

// ListDiskIDs implements Interface.
func (d *Disk) ListDiskIDs(ctx context.Context, request *ListDiskIDsRequest) (*ListDiskIDsResponse, error) {
	const op = "list disk ids"
	return hostctx.Do(ctx, op, d.host, request, func(h diskapi.HostAPI, out *ListDiskIDsResponse) error {
		found, err := h.ListDiskIDs()
		if err != nil {
			return winerr.Wrap(op, "", err)
		}
		out.DiskIDs = make(map[uint32]*DiskIDs, len(found))
		for number, id := range found {
			out.DiskIDs[number] = &DiskIDs{Page83: id.Page83, SerialNumber: id.SerialNumber}
		}
		return nil
	})
}

// ListDiskLocations implements Interface.
func (d *Disk) ListDiskLocations(ctx context.Context, request *ListDiskLocationsRequest) (*ListDiskLocationsResponse, error) {
	const op = "list disk locations"
	return hostctx.Do(ctx, op, d.host, request, func(h diskapi.HostAPI, out *ListDiskLocationsResponse) error {
		found, err := h.ListDiskLocations()
		if err != nil {
			return winerr.Wrap(op, "", err)
		}
		out.DiskLocations = make(map[uint32]*DiskLocation, len(found))
		for number, at := range found {
			out.DiskLocations[number] = &DiskLocation{Adapter: at.Adapter, Bus: at.Bus, Target: at.Target, LUNID: at.LUNID}
		}
		return nil
	})
}

// PartitionDisk implements Interface.
func (d *Disk) PartitionDisk(ctx context.Context, request *PartitionDiskRequest) (*PartitionDiskResponse, error) {
	return hostctx.Do(ctx, "partition a disk", d.host, request, func(h diskapi.HostAPI, _ *PartitionDiskResponse) error {
		x, err := extended(h, "partition", request.DiskNumber, request.MustBe)
		switch {
		case err == nil:
			return winerr.Wrap("partition", object(request.DiskNumber), x.PartitionDisk(request.DiskNumber))
		case request.MustBe != MustBe{}:
			return err
		}
		return partition(ctx, h, request.DiskNumber)
	})
}

// partition is PartitionDisk on a host that can only do it step by step. Each step is
// taken only if its result is missing, so a call that was interrupted half-way is
// completed by the next one.
func partition(ctx context.Context, h diskapi.HostAPI, number uint32) error {
	initialized, err := h.IsDiskInitialized(number)
	if err != nil {
		return winerr.Wrap("look for a partition table on", object(number), err)
	}
	if !initialized {
		if err := h.InitializeDisk(number); err != nil {
			return winerr.Wrap("initialize", object(number), err)
		}
	}

	// A host without contexts may have spent the caller's time.
	if err := ctx.Err(); err != nil {
		return winerr.Wrap("partition", object(number), err)
	}

	partitioned, err := h.BasicPartitionsExist(number)
	if err != nil {
		return winerr.Wrap("look for basic partitions on", object(number), err)
	}
	if !partitioned {
		if err := h.CreateBasicPartition(number); err != nil {
			return winerr.Wrap("create a basic partition on", object(number), err)
		}
	}
	return nil
}

// Rescan implements Interface.
func (d *Disk) Rescan(ctx context.Context, request *RescanRequest) (*RescanResponse, error) {
	const op = "rescan disks"
	return hostctx.Do(ctx, op, d.host, request, func(h diskapi.HostAPI, _ *RescanResponse) error {
		return winerr.Wrap(op, "", h.Rescan())
	})
}

// SetDiskState implements Interface.
func (d *Disk) SetDiskState(ctx context.Context, request *SetDiskStateRequest) (*SetDiskStateResponse, error) {
	return hostctx.Do(ctx, "set state of a disk", d.host, request, func(h diskapi.HostAPI, _ *SetDiskStateResponse) error {
		h, err := meant(h, "set state of", request.DiskNumber, request.MustBe)
		if err != nil {
			return err
		}
		return winerr.Wrap("set state of", object(request.DiskNumber), h.SetDiskState(request.DiskNumber, request.IsOnline))
	})
}

// SetDiskReadOnly implements Interface.
func (d *Disk) SetDiskReadOnly(ctx context.Context, request *SetDiskReadOnlyRequest) (*SetDiskReadOnlyResponse, error) {
	const op = "set read-only state of"
	return hostctx.Do(ctx, op+" a disk", d.host, request, func(h diskapi.HostAPI, _ *SetDiskReadOnlyResponse) error {
		h, err := meant(h, op, request.DiskNumber, request.MustBe)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, object(request.DiskNumber), h.SetDiskReadOnly(request.DiskNumber, request.IsReadOnly))
	})
}

// OnlineDiskReadOnly implements Extended.
func (d *Disk) OnlineDiskReadOnly(ctx context.Context, request *OnlineDiskReadOnlyRequest) (*OnlineDiskReadOnlyResponse, error) {
	const op = "bring online read-only"
	return hostctx.Do(ctx, op+" a disk", d.host, request, func(h diskapi.HostAPI, _ *OnlineDiskReadOnlyResponse) error {
		x, err := extended(h, op, request.DiskNumber, request.MustBe)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, object(request.DiskNumber), x.OnlineDiskReadOnly(request.DiskNumber))
	})
}

// GetDiskReadOnly implements Interface.
func (d *Disk) GetDiskReadOnly(ctx context.Context, request *GetDiskReadOnlyRequest) (*GetDiskReadOnlyResponse, error) {
	const op = "get read-only state of"
	return hostctx.Do(ctx, op+" a disk", d.host, request, func(h diskapi.HostAPI, out *GetDiskReadOnlyResponse) error {
		h, err := meant(h, op, request.DiskNumber, request.MustBe)
		if err != nil {
			return err
		}
		out.IsReadOnly, err = h.GetDiskReadOnly(request.DiskNumber)
		return winerr.Wrap(op, object(request.DiskNumber), err)
	})
}

// meant returns the host for a request that may say which disk it means.
func meant(h diskapi.HostAPI, op string, diskNumber uint32, mustBe MustBe) (diskapi.HostAPI, error) {
	if mustBe == (MustBe{}) {
		return h, nil
	}
	return extended(h, op, diskNumber, mustBe)
}

// extended returns the host for a request that can say which disk it means.
func extended(h diskapi.HostAPI, op string, diskNumber uint32, mustBe MustBe) (diskapi.Extended, error) {
	x, err := hostctx.Extended[diskapi.Extended](h, op, object(diskNumber))
	if err != nil {
		return nil, err
	}
	return x.MustBe(mustBe), nil
}

func object(diskNumber uint32) string { return fmt.Sprintf("disk %d", diskNumber) }
