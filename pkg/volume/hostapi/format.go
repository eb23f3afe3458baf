package api

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const (
	opFormat = "format volume"

	ntfsName = "NTFS"
)

func (h host) formatVolume(ctx context.Context, volumeID string) error {
	id, err := parseID(opFormat, volumeID)
	if err != nil {
		return err
	}
	return h.change(ctx, work{op: opFormat, volume: id, over: h.formatOver}, func(ctx context.Context) error {
		return h.format(ctx, id)
	})
}

// errKept is the end of a format that found a file system on the volume.
var errKept = errors.New("the volume has a file system")

// format puts an empty NTFS on a volume.
func (h host) format(ctx context.Context, id win.VolumeID) error {
	if err := h.refuseSystemDisk(ctx, opFormat, id); err != nil {
		return err
	}
	switch err := h.formatEmpty(ctx, id); {
	case errors.Is(err, errKept):
		klog.FromContext(ctx).V(2).Info("The volume has a file system and is not formatted", "volume", id)
		return nil
	case err != nil:
		return winerr.Wrap(opFormat, string(id), err)
	}
	return h.awaitNTFS(ctx, id)
}

// formatEmpty formats a volume if there is nothing on it.
//
// Windows has no documented function for that, only methods of WMI classes. The storage
// service behind the first one works from a cache and may need a while to notice a new
// volume; the second one is older, but asks Windows itself.
// https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
// https://learn.microsoft.com/previous-versions/windows/desktop/vdswmi/format-method-in-class-win32-volume
func (h host) formatEmpty(ctx context.Context, id win.VolumeID) error {
	var failure error
	noticed, err := h.poll(ctx, func() (noticed bool, err error) {
		if failure, err = h.formatFree(ctx, id, h.m.Format); err != nil || !unnoticed(failure) {
			return true, err
		}
		// The refresh is a help, not a condition.
		if err := h.m.RefreshStorageCache(ctx); err != nil && ctx.Err() != nil {
			return false, err
		}
		return false, nil
	})
	switch {
	case err != nil:
		return err
	case noticed && !missing(failure):
		return failure
	}
	klog.FromContext(ctx).Info("The storage service cannot format the volume, trying Win32_Volume", "volume", id, "error", failure)
	if failure, err = h.formatFree(ctx, id, h.m.FormatLegacy); err != nil {
		return err
	}
	return failure
}

// unnoticed reports whether the storage service does not know the volume yet.
func unnoticed(err error) bool {
	return errors.Is(err, winerr.NotFound) || errors.Is(err, winerr.StorageCacheOutOfDate)
}

// missing reports whether the machine has no storage service, or one that cannot do it.
// https://learn.microsoft.com/windows/win32/wmisdk/wmi-error-constants
func missing(err error) bool {
	const (
		wbemProviderNotFound    winerr.Code = 0x80041011
		wbemInvalidNamespace    winerr.Code = 0x8004100E
		wbemInvalidClass        winerr.Code = 0x80041010
		wbemProviderLoadFailure winerr.Code = 0x80041013
		classNotRegistered      winerr.Code = 0x80040154
	)
	switch winerr.CodeOf(err) {
	case wbemProviderNotFound, wbemInvalidNamespace, wbemInvalidClass, wbemProviderLoadFailure, classNotRegistered:
		return true
	default:
		return errors.Is(err, winerr.StorageNotSupported)
	}
}

// formatFree formats a volume by one of the two ways, and waits a little for others to
// let go of it: virus scanners and indexers open every volume that arrives. The failure is
// that of the format; err says that there must be no other attempt.
func (h host) formatFree(ctx context.Context, id win.VolumeID, format func(context.Context, win.VolumeID) error) (failure, err error) {
	const (
		tries = 3
		pause = time.Second
	)
	for try := 1; ; try++ {
		if err := h.refuseToFormat(ctx, id); err != nil {
			return nil, err
		}
		if failure = format(ctx, id); !errors.Is(failure, winerr.Busy) || try == tries {
			return failure, nil
		}
		if err := h.m.Sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// refuseToFormat fails unless there is nothing on a volume. It is asked before each single
// attempt: who had the volume open during the last one, or came while we waited, may have
// formatted it and begun to use it.
func (h host) refuseToFormat(ctx context.Context, id win.VolumeID) error {
	if h.formatOver {
		return nil
	}
	done, err := h.formatted(ctx, opFormat, id)
	if err == nil && done {
		return errKept
	}
	return err
}

// awaitNTFS waits until Windows has let go of the old content and recognises the new file
// system.
func (h host) awaitNTFS(ctx context.Context, id win.VolumeID) error {
	var name string
	var failure error
	ready, err := h.poll(ctx, func() (bool, error) {
		if name, failure = h.m.FileSystem(ctx, id); failure != nil && !answered(failure) {
			return false, failure
		}
		return failure == nil && winpath.Equal(name, ntfsName), nil
	})
	switch {
	case err != nil:
		return winerr.Wrap(opFormat, string(id), err)
	case ready:
		return nil
	case failure != nil:
		return winerr.As(winerr.Unavailable, opFormat, string(id), failure, "the format succeeded, but the new file system cannot be seen yet")
	default:
		return winerr.New(winerr.Unavailable, opFormat, string(id), "the format succeeded, but the volume still shows file system %s", name)
	}
}
