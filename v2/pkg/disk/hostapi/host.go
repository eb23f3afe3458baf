package api

import (
	"context"
	"fmt"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var _ Extended = DiskAPI{}

// DiskAPI is a machine with disks. New and NewOn return one; the zero value is the
// machine this program runs on, like New's.
//
// Calls that change one disk wait for each other, and equal calls in a row share one run. Calls
// on different disks run at the same time.
type DiskAPI struct {
	ctx    context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
	host   *host
	mustBe MustBe
}

// New returns the machine this program runs on. On other systems than Windows its methods fail
// with an error for which errors.Is(err, errors.ErrUnsupported) holds.
//
// It is cheap, and all that it returns share their queues: drivers make a new one for every call.
func New() DiskAPI { return DiskAPI{} }

// NewOn returns the disks of a given machine. Outside this module that is an emulated one:
// NewOn(node) with a *winsim.Node. Two results for the same machine do not share their queues.
func NewOn(m win.Machine) DiskAPI { return DiskAPI{host: &host{m: m}} }

// WithContext implements Extended.
func (d DiskAPI) WithContext(ctx context.Context) HostAPI {
	d.ctx = ctx
	return d
}

// MustBe implements Extended.
func (d DiskAPI) MustBe(mustBe MustBe) Extended {
	d.mustBe = mustBe
	return d
}

// thisMachine is made when it is first used: importing a package does no work.
var thisMachine = sync.OnceValue(func() *host { return &host{m: local.Machine()} })

// bound returns what the methods below work with, also for the zero value.
func (d DiskAPI) bound() (context.Context, *host) {
	if d.ctx == nil {
		d.ctx = context.Background() //nolint:forbidigo // the published HostAPI has no context; WithContext brings one
	}
	if d.host == nil {
		d.host = thisMachine()
	}
	return d.ctx, d.host
}

// InitializeDisk implements HostAPI.
func (d DiskAPI) InitializeDisk(diskNumber uint32) error {
	_, h := d.bound()
	return d.change(opInitialize, diskNumber, h.initialize)
}

// CreateBasicPartition implements HostAPI.
func (d DiskAPI) CreateBasicPartition(diskNumber uint32) error {
	_, h := d.bound()
	return d.change(opCreatePartition, diskNumber, h.createPartition)
}

// PartitionDisk implements Extended.
func (d DiskAPI) PartitionDisk(diskNumber uint32) error {
	_, h := d.bound()
	return d.change(opPartition, diskNumber, h.partition)
}

// SetDiskReadOnly implements HostAPI.
func (d DiskAPI) SetDiskReadOnly(diskNumber uint32, isReadOnly bool) error {
	_, h := d.bound()
	op := opMakeWritable
	if isReadOnly {
		op = opMakeReadOnly
	}
	return d.change(op, diskNumber, func(ctx context.Context, disk target) error {
		return h.setReadOnly(ctx, op, disk, isReadOnly)
	})
}

// OnlineDiskReadOnly implements Extended.
func (d DiskAPI) OnlineDiskReadOnly(diskNumber uint32) error {
	_, h := d.bound()
	return d.change(opOnlineReadOnly, diskNumber, h.takeOnlineReadOnly)
}

// GetDiskReadOnly implements HostAPI.
func (d DiskAPI) GetDiskReadOnly(diskNumber uint32) (bool, error) {
	const op = "get read-only state of"
	ctx, h := d.bound()
	disk, err := h.meant(ctx, op, diskNumber, d.mustBe)
	if err != nil {
		return false, err
	}
	attributes, err := h.m.DiskAttributes(ctx, disk.device)
	return attributes.ReadOnly, winerr.Wrap(op, disk.name(), err)
}

// GetDiskStats implements HostAPI.
func (d DiskAPI) GetDiskStats(diskNumber uint32) (int64, error) {
	ctx, h := d.bound()
	geometry, err := h.m.DiskGeometry(ctx, win.PhysicalDrive(diskNumber))
	return geometry.Size, winerr.Wrap("get size of", diskName(diskNumber), err)
}

// SetDiskState implements HostAPI.
func (d DiskAPI) SetDiskState(diskNumber uint32, isOnline bool) error {
	_, h := d.bound()
	if isOnline {
		return d.change(opOnline, diskNumber, h.takeOnline)
	}
	return d.change(opOffline, diskNumber, h.takeOffline)
}

// GetDiskState implements HostAPI.
func (d DiskAPI) GetDiskState(diskNumber uint32) (bool, error) {
	ctx, h := d.bound()
	attributes, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(diskNumber))
	if err != nil {
		return false, winerr.Wrap("get state of", diskName(diskNumber), err)
	}
	return !attributes.Offline, nil
}

// host is a machine with disks, the queues of its changes, and the adapters that a rescan waits
// for.
type host struct {
	m        win.Machine
	changes  queue.Queues[change]
	adapters adaptersAsked
	slow     tasks.SlowObjects // disks that a list has waited for
}

// diskName is the name of a disk in errors, and in its queue.
func diskName(disk uint32) string { return fmt.Sprintf("disk %d", disk) }
