package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/signature"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const (
	opFormatted = "look for a file system on volume"

	rawName = "RAW" // the driver for volumes that no file system recognised
)

func (b boundHost) IsVolumeFormatted(volumeID string) (bool, error) {
	ctx, h := b.ctx, b.host
	id, err := parseID(opFormatted, volumeID)
	if err != nil {
		return false, err
	}
	var found content
	err = h.watch(ctx, opFormatted, id, func(ctx context.Context) (err error) {
		found, err = h.content(ctx, opFormatted, id)
		if winerr.KindOf(err) == winerr.InUse { // a format that runs, or has ended since, looks like that
			unlock, lockErr := h.lockFormat(ctx, opFormatted, id)
			if lockErr != nil {
				return lockErr
			}
			defer unlock()
			found, err = h.content(ctx, opFormatted, id)
		}
		return err
	})
	return found == hasFileSystem, err
}

type content int

const (
	isEmpty      content = iota
	isUnfinished         // it has a new file system whose root access is not set
	hasFileSystem
)

// content returns what is on a volume. It is empty only if that is certain, because drivers then
// format it: a damaged, foreign or locked volume is an error.
func (h host) content(ctx context.Context, op string, id win.VolumeID) (content, error) {
	fileSystem, err := h.fileSystem(ctx, op, id)
	if err != nil {
		return isEmpty, err
	}
	if fileSystem.Name == "" {
		return isEmpty, h.refuseForeign(ctx, op, id)
	}
	switch unfinished, err := h.unfinished(ctx, op, id, fileSystem); {
	case err != nil:
		return isEmpty, err
	case unfinished:
		return isUnfinished, nil
	}
	return hasFileSystem, nil
}

// fileSystem describes a volume's file system, without a name if Windows recognises none.
//
// Only ERROR_UNRECOGNIZED_VOLUME (1005) means that Windows recognises none; volumes that are
// locked or unreadable fail with other codes. A volume that has just arrived may give that
// code as well, before Windows has read its first sectors, so it must give it twice.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumeinformationw
func (h host) fileSystem(ctx context.Context, op string, id win.VolumeID) (info win.FileSystemInfo, err error) {
	const pause = 100 * time.Millisecond
	raw, onlined := 0, false
	_, err = win.Poll(ctx, h.m, win.Backoff{First: pause, Longest: pause, Limit: 2 * pause}, func(time.Duration) (done bool, err error) {
		info, err = h.m.FileSystem(ctx, id)
		if winerr.CodeOf(err) == winerr.NotReady && !onlined {
			// With automount disabled, new volumes stay offline until they are brought online.
			raw, onlined = 0, true
			if err := h.m.OnlineVolume(ctx, id); err != nil && !answered(err) {
				return false, err
			}
			info, err = h.m.FileSystem(ctx, id)
		}
		switch {
		case err == nil && info.Name == "":
			return false, winerr.New(winerr.Internal, op, string(id), "Windows does not name its file system")
		case winerr.CodeOf(err) == winerr.UnrecognizedVolume, err == nil && winpath.Equal(info.Name, rawName):
			info = win.FileSystemInfo{}
			raw++
			return raw == 2, nil
		case err != nil:
			return false, failed(op, id, err)
		}
		return true, nil
	})
	return info, winerr.Wrap(op, string(id), err)
}

// refuseForeign fails if a volume has content that Windows does not recognise: if there are traces of it at either end, as
// the second boot sector of NTFS, or if the first sectors are not blank.
func (h host) refuseForeign(ctx context.Context, op string, id win.VolumeID) error {
	const advice = "if it may have data, take a snapshot of its disk and examine that, for instance with chkdsk; if nothing on the disk is needed, run 'clean all' of diskpart on it"
	head, err := h.m.ReadDevice(ctx, id.Device(), 0, signature.HeadLength)
	if err != nil {
		return winerr.Wrap(op, string(id), err)
	}
	extents, err := h.m.VolumeExtents(ctx, id)
	if err != nil {
		return failed(op, id, err)
	}
	if len(extents) != 1 {
		return winerr.New(winerr.InUse, op, string(id), "it has %d parts, so csi-proxy cannot find its end and say whether it is empty", len(extents))
	}
	tail, err := h.m.ReadDevice(ctx, id.Device(), max(0, extents[0].Length-signature.TailLength), signature.TailLength)
	if err != nil {
		return winerr.Wrap(op, string(id), err)
	}
	found := cmp.Or(signature.InHead(head), signature.InTail(tail))
	switch {
	case found != "":
		found = "there are traces of " + found
	case !signature.Blank(head):
		found = fmt.Sprintf("its first %d KiB are not all zero", signature.HeadLength>>10)
	default:
		return nil
	}
	return &winerr.Error{Op: op, Object: string(id), Kind: winerr.InUse, Err: errors.New("its content is unrecognised but not empty: " + found), Advice: advice}
}
