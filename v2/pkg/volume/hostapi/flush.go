package api

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
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
		case isDeviceError(err), isSilence(err):
			return winerr.As(winerr.KindOf(err), opFlush, string(id), err, "what was written last may be lost; check the disk")
		}
		return failed(opFlush, id, err)
	})
}

// isSilence reports whether a disk did not answer, or was not asked because it has not answered before.
func isSilence(err error) bool {
	return errors.Is(err, diskprobe.ErrNoAnswer) || errors.Is(err, win.ErrStuck)
}

// isDeviceError reports whether a disk, rather than Windows or a caller, failed.
func isDeviceError(err error) bool {
	switch winerr.CodeOf(err) {
	case winerr.WriteProtect, winerr.IODevice, winerr.NotReady, winerr.SemTimeout, winerr.GenFailure, winerr.FileInvalid, winerr.FileCorrupt,
		winerr.CRC, winerr.WriteFault, winerr.ReadFault, winerr.DeviceHardwareError, winerr.DiskCorrupt:
		return true
	default:
		return false
	}
}

// flush writes everything cached to a volume. It may take minutes. A read-only volume has nothing to write, nor
// has one whose file system does not know the request.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers
func (h host) flush(ctx context.Context, id win.VolumeID) error {
	err := h.watch(ctx, opFlush, id, func(ctx context.Context) error { return h.m.FlushVolume(ctx, id) })
	if err == nil {
		h.unflushed.Delete(id)
	}
	switch winerr.CodeOf(err) {
	case winerr.InvalidFunction:
		return nil
	case winerr.AccessDenied, winerr.WriteProtect: // a disk that fails may say it, too
		if h.readOnly(ctx, id) {
			return nil
		}
		return err
	default:
		return err
	}
}

// readOnly reports whether a volume, or its disk, is known to be read-only. Flushing needs write
// access, which such a volume may refuse with ERROR_ACCESS_DENIED (5).
func (h host) readOnly(ctx context.Context, id win.VolumeID) bool {
	number, err := h.m.DeviceNumber(ctx, id.Device())
	if err == nil && number.Type == win.DeviceTypeDisk {
		attributes, err := h.m.DiskAttributes(ctx, win.PhysicalDrive(number.Number))
		if err == nil && attributes.ReadOnly {
			return true
		}
	}
	fileSystem, err := h.m.FileSystem(ctx, id)
	return err == nil && fileSystem.ReadOnly
}
