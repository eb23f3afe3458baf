package api

import (
	"context"
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hung"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opFlush = "write cache of volume"

// WriteVolumeCache may take minutes on a slow disk. It does not join a flush that has begun,
// which may miss what was written since. Callers that wait for the next flush share it.
func (b boundHost) WriteVolumeCache(volumeID string) error {
	ctx, h := b.ctx, b.host
	id, err := parseID(opFlush, volumeID)
	if err != nil {
		return err
	}
	return h.change(ctx, work{op: opFlush, volume: id, fresh: true}, func(ctx context.Context) error {
		err := h.flush(ctx, id)
		switch {
		case err == nil:
			return nil
		case isDeviceError(err):
			return winerr.As(winerr.KindOf(err), opFlush, string(id), err, "what was written last may be lost; check the disk")
		}
		return failed(opFlush, id, err)
	})
}

// isDeviceError reports whether a disk, rather than Windows or a caller, failed.
func isDeviceError(err error) bool {
	if errors.Is(err, hung.Err) {
		return true
	}
	switch winerr.CodeOf(err) {
	case winerr.IODevice, winerr.SemTimeout, winerr.GenFailure, winerr.FileInvalid, winerr.FileCorrupt:
		return true
	default:
		return false
	}
}

// How long a flush may take before its disks must show that they answer. It may take minutes.
const (
	flushPause = 10 * time.Second
	retryPause = time.Second // of a flush whose disk failed before
)

// flush writes everything cached to a volume. A read-only volume has nothing to write, nor
// has one whose file system does not know the request.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers
func (h host) flush(ctx context.Context, id win.VolumeID) error {
	pause := flushPause
	if before, found := h.unflushed.Load(id); found && !before.(lastFlush).done {
		pause = retryPause
	}
	disks := func(ctx context.Context) ([]uint32, error) { return h.disksOf(ctx, opFlush, id) }
	err := hung.Watch(ctx, h.m, pause, disks, func(ctx context.Context) error { return h.m.FlushVolume(ctx, id) })
	if err == nil {
		h.unflushed.Delete(id)
	}
	switch winerr.CodeOf(err) {
	case winerr.WriteProtect, winerr.InvalidFunction:
		return nil
	case winerr.AccessDenied:
		if h.readOnly(ctx, id) {
			return nil
		}
		return err
	default:
		return err
	}
}

// readOnly reports whether a volume is known to be on a read-only disk. Flushing needs write
// access, which such a volume may refuse with ERROR_ACCESS_DENIED (5).
func (h host) readOnly(ctx context.Context, id win.VolumeID) bool {
	number, err := h.m.DeviceNumber(ctx, id.Device())
	if err != nil || number.Type != win.DeviceTypeDisk {
		return false
	}
	attributes, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(number.Number))
	return err == nil && attributes.ReadOnly
}
