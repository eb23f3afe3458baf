package api

import (
	"context"
	"errors"
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

func (h host) isVolumeFormatted(ctx context.Context, volumeID string) (bool, error) {
	id, err := parseID(opFormatted, volumeID)
	if err != nil {
		return false, err
	}
	return h.formatted(ctx, opFormatted, id)
}

// formatted reports whether a volume has a file system. It says no only of a volume that
// is really empty, because what drivers do next is format it: a damaged, foreign or
// locked volume is an error.
func (h host) formatted(ctx context.Context, op string, id win.VolumeID) (bool, error) {
	name, err := h.fileSystem(ctx, op, id)
	if err != nil || name != "" {
		return err == nil, err
	}
	return false, h.refuseForeign(ctx, op, id)
}

// fileSystem returns the name of a volume's file system, or "" if Windows recognises none.
//
// Only one code means that none is recognised; a volume that is locked or cannot be read
// answers with others. A volume that has just arrived may give that code, too, while its
// first sectors are on their way, so it has to be given twice.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getvolumeinformationw
func (h host) fileSystem(ctx context.Context, op string, id win.VolumeID) (string, error) {
	const pause = 100 * time.Millisecond
	for raw, onlined := 0, false; ; {
		name, err := h.m.FileSystem(ctx, id)
		switch {
		case err == nil && name == "":
			return "", winerr.New(winerr.Internal, op, string(id), "Windows does not name its file system")
		case err == nil && !winpath.Equal(name, rawName):
			return name, nil
		case err == nil || winerr.CodeOf(err) == winerr.UnrecognizedVolume:
			if raw++; raw == 2 {
				return "", nil
			}
			if err := h.m.Sleep(ctx, pause); err != nil {
				return "", winerr.Wrap(op, string(id), err)
			}
		case winerr.CodeOf(err) == winerr.NotReady && !onlined:
			// With automount disabled new volumes stay offline until somebody asks.
			raw, onlined = 0, true
			if err := h.m.OnlineVolume(ctx, id); err != nil && !answered(err) {
				return "", winerr.Wrap(op, string(id), err)
			}
		default:
			return "", failed(op, id, err)
		}
	}
}

// refuseForeign fails if there is something on a volume in which Windows recognises no
// file system.
func (h host) refuseForeign(ctx context.Context, op string, id win.VolumeID) error {
	head := make([]byte, signature.HeadLength)
	if err := h.m.ReadDevice(ctx, id.Device(), 0, head); err != nil {
		return winerr.Wrap(op, string(id), err)
	}
	if found := signature.InHead(head); found != "" {
		return &winerr.Error{
			Op: op, Object: string(id), Kind: winerr.InUse,
			Err:    errors.New("its content is unrecognised but not empty: there are traces of " + found),
			Advice: "check the volume, and wipe its first megabyte if nothing on it is needed",
		}
	}
	return nil
}
