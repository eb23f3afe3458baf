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
	refsName = "ReFS"
)

func (h host) formatVolume(ctx context.Context, volumeID string, options FormatOptions) error {
	id, err := parseID(opFormat, volumeID)
	if err != nil {
		return err
	}
	settings, err := options.settings()
	if err != nil {
		return winerr.As(winerr.Invalid, opFormat, string(id), err, "")
	}
	return h.changeContent(ctx, work{op: opFormat, volume: id, over: h.formatOver, format: settings}, func(ctx context.Context) error {
		return h.format(ctx, id, settings)
	})
}

// format puts an empty file system on a volume, unless it has a file system.
func (h host) format(ctx context.Context, id win.VolumeID, settings formatSettings) error {
	if err := h.refuseSystemDisk(ctx, opFormat, id); err != nil {
		return err
	}
	unlock, err := h.lockFormat(ctx, opFormat, id)
	if err != nil {
		return err
	}
	defer unlock()
	result, err := h.formatEmpty(ctx, id, settings)
	switch {
	case err != nil:
		return winerr.Wrap(opFormat, string(id), err)
	case result.before == hasFileSystem:
		klog.FromContext(ctx).V(2).Info("The volume has a file system and is not formatted", "volume", id)
		return nil
	case result.before == isUnfinished:
		klog.FromContext(ctx).Info("A format of the volume was interrupted; setting its root access and label", "volume", id)
		return h.finish(ctx, id, settings)
	case settings.FileSystem == refsName && errors.Is(result.failure, winerr.Unsupported):
		return winerr.As(winerr.Unsupported, opFormat, string(id), result.failure, "this edition of Windows cannot format with ReFS; use NTFS")
	case result.failure != nil:
		return winerr.Wrap(opFormat, string(id), result.failure)
	}
	if err := h.awaitFormatted(ctx, id, settings.FileSystem); err != nil || settings.rootAccess == "" {
		return err
	}
	return h.finish(ctx, id, settings)
}

// formatSettles is how long the storage service may take for a format whose caller has ended.
const formatSettles = 2 * time.Minute

// lockFormat keeps other processes from formatting a volume. What Windows may still do, for a process that has ended or for
// a call of ours that has not come back, keeps the lock for a while.
func (h host) lockFormat(ctx context.Context, op string, id win.VolumeID) (unlock func(), err error) {
	var lock win.FormatLock
	taken, err := h.poll(ctx, func() (bool, error) {
		lock, err = h.m.LockFormat(ctx, id)
		if winerr.CodeOf(err) == winerr.WaitTimeout {
			return false, nil
		}
		return err == nil, err
	})
	later := func() {
		_ = h.m.Sleep(context.WithoutCancel(ctx), formatSettles)
		lock.Release()
	}
	switch {
	case err != nil:
		return nil, winerr.Wrap(op, string(id), err)
	case !taken:
		return nil, winerr.New(winerr.Unavailable, op, string(id), "another process formats it, or has ended while it did; try again in %.0f minutes", formatSettles.Minutes())
	case lock.Abandoned:
		go later()
		return nil, winerr.New(winerr.Unavailable, op, string(id), "a process has ended while it formatted it, and Windows may go on; try again in %.0f minutes", formatSettles.Minutes())
	}
	return func() {
		if _, stuck := h.m.StuckChange(context.WithoutCancel(ctx), string(id.Device())); stuck {
			go later()
			return
		}
		lock.Release()
	}, nil
}

// formatResult is what a format by one of Windows' methods came to. The zero value is success.
type formatResult struct {
	before  content // unless the volume was empty, the method was not called
	failure error   // of the method; another method may succeed
}

// formatEmpty formats a volume if there is nothing on it. An error means that it must not be
// tried again.
//
// Windows has no documented function for that, only methods of WMI classes. The storage
// service behind the first one works from a cache and may need a while to notice a new
// volume; the second one is older, but asks Windows itself.
// https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
// https://learn.microsoft.com/previous-versions/windows/desktop/vdswmi/format-method-in-class-win32-volume
func (h host) formatEmpty(ctx context.Context, id win.VolumeID, settings formatSettings) (result formatResult, err error) {
	noticed, err := h.poll(ctx, func() (noticed bool, err error) {
		if result, err = h.formatBy(ctx, id, settings, h.m.Format); err != nil || !unnoticed(result.failure) {
			return true, err
		}
		return false, h.refresh(ctx)
	})
	if err != nil || (noticed && !missing(result.failure)) {
		return result, err
	}
	klog.FromContext(ctx).Info("The storage service cannot format the volume, trying Win32_Volume", "volume", id, "error", result.failure)
	return h.formatBy(ctx, id, settings, h.m.FormatLegacy)
}

// refreshLimit is how long the storage service may take to look again.
const refreshLimit = 15 * time.Second

// refresh makes the storage service look again, which works from a cache. It may help, and its failure does not matter: only
// the end of ctx does.
func (h host) refresh(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, refreshLimit)
	defer cancel()
	_ = h.m.RefreshStorageCache(limited)
	return ctx.Err()
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

// busyBackoff makes three attempts of a format: virus scanners and indexers open every volume
// that arrives.
var busyBackoff = win.Backoff{First: time.Second, Longest: time.Second, Limit: 2 * time.Second}

type formatMethod func(context.Context, win.VolumeID, win.FormatOptions) error

// formatBy formats a volume by one of the two methods, if there is nothing on it. It looks
// before each attempt: the process that had the volume open during the last one may have
// formatted it and begun to use it.
func (h host) formatBy(ctx context.Context, id win.VolumeID, settings formatSettings, method formatMethod) (result formatResult, err error) {
	options := settings.FormatOptions
	options.Force = h.formatOver
	if settings.rootAccess != "" {
		options.Label = unfinishedLabel
	}
	_, err = win.Poll(ctx, h.m, busyBackoff, func(time.Duration) (done bool, err error) {
		if !h.formatOver {
			if found, err := h.content(ctx, opFormat, id); found != isEmpty || err != nil {
				result = formatResult{before: found}
				return true, err
			}
		}
		result.failure = method(ctx, id, options)
		return !errors.Is(result.failure, winerr.Busy), nil
	})
	return result, err
}

// awaitFormatted waits until Windows drops the old content and recognises the new file system.
func (h host) awaitFormatted(ctx context.Context, id win.VolumeID, name string) error {
	var info win.FileSystemInfo
	var failure error
	ready, err := h.poll(ctx, func() (bool, error) {
		if info, failure = h.m.FileSystem(ctx, id); failure != nil && !answered(failure) {
			return false, failure
		}
		return failure == nil && winpath.Equal(info.Name, name), nil
	})
	switch {
	case err != nil:
		return winerr.Wrap(opFormat, string(id), err)
	case ready:
		return nil
	case failure != nil:
		return winerr.As(winerr.Unavailable, opFormat, string(id), failure, "the format succeeded, but the new file system cannot be seen yet")
	default:
		return winerr.New(winerr.Unavailable, opFormat, string(id), "the format succeeded, but the volume still shows file system %s", info.Name)
	}
}
