package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

const (
	opLookup  = "get volume mounted at"
	opClosest = "get closest volume of"
)

// GetVolumeIDFromTargetPath follows links, such as from a pod's folder to the folder where the volume is
// mounted. It reads only the links, so the volume may be offline or have no file system. One that is
// certainly gone is not mounted.
func (b boundHost) GetVolumeIDFromTargetPath(targetPath string) (string, error) {
	ctx, h := b.ctx, b.host
	path := targetPath
	for range win.MaxLinks {
		if _, hasParent := winpath.Parent(path); !hasParent {
			if err := h.limits.Check(opLookup, path, policy.Read); err != nil {
				return "", err
			}
			return h.volumeOfDrive(ctx, opLookup, targetPath, path)
		}
		linkPath, link, err := h.files().Link(ctx, opLookup, path)
		var next policy.Hop
		if err == nil {
			next, err = policy.LeadsTo(linkPath, link)
		}
		switch {
		case next.Guessed && h.limits != nil:
			return "", winerr.New(winerr.Denied, opLookup, targetPath, "the link %s is not followed: its target is relative and does not go straight down", path)
		case errors.Is(err, winerr.NotFound): // nothing there, or an ordinary folder
			return "", notMounted(opLookup, targetPath, "%s: %w", path, err)
		case policy.Unreadable(err):
			return "", winerr.As(winerr.InUse, opLookup, targetPath, err, "remove it with Rmdir")
		case err != nil && h.limits != nil && (errors.Is(err, winerr.Unsupported) || errors.Is(err, winerr.Denied)):
			return "", winerr.New(winerr.Denied, opLookup, targetPath, "%s: %w", path, winerr.Cause(err))
		case err != nil:
			return "", winerr.Wrap(opLookup, targetPath, err)
		case next.Remote != "":
			return "", notLocal(opLookup, targetPath, next.Remote)
		case len(next.Below) > 0:
			return "", winerr.New(winerr.NotFound, opLookup, targetPath, "%s leads to a folder of volume %s, not to the volume itself", path, next.Volume)
		case next.Volume != "":
			if waited, err := lostvolume.AwaitUnmount(ctx, h.m, opLookup, path, linkPath); err != nil {
				return "", err
			} else if waited {
				continue
			}
			return h.unlessGone(ctx, opLookup, targetPath, next.Volume)
		}
		path = next.Path
	}
	return "", winerr.As(winerr.InUse, opLookup, targetPath, winerr.CantResolveFilename, "")
}

// unlessGone fails for a volume that is certainly gone.
func (h host) unlessGone(ctx context.Context, op, targetPath string, id win.VolumeID) (string, error) {
	switch gone, err := h.lost.Volume(ctx, h.m, id); {
	case err != nil:
		return "", winerr.Wrap(op, targetPath, err)
	case gone:
		return "", notMounted(op, targetPath, "the volume %s is gone, and so is its disk: %w", id, winerr.NoSuchDevice)
	}
	return string(id), nil
}

// notMounted is the failure of a path that shows no volume. aws-ebs takes "because it does not exist" for
// "not mounted", and any other text for a failure. The words are from PowerShell, which the first releases ran.
func notMounted(op, targetPath, format string, args ...any) error {
	return winerr.New(winerr.NotFound, op, targetPath, "no mounted volume can be found because it does not exist: "+format, args...)
}

// GetClosestVolumeIDFromTargetPath lets Windows find the volume of a path, if no policy limits where links may
// lead. If Windows cannot, because the path does not exist yet or a volume on the way does
// not answer, GetClosestVolumeIDFromTargetPath follows links itself and goes up the path until it finds a
// volume.
func (b boundHost) GetClosestVolumeIDFromTargetPath(targetPath string) (string, error) {
	ctx, h := b.ctx, b.host
	if h.limits == nil {
		switch id, err := h.volumeAt(ctx, win.Following(targetPath)); {
		case err == nil:
			return string(id), nil
		case !answered(err) || errors.Is(err, winerr.Denied):
			return "", winerr.Wrap(opClosest, targetPath, err)
		}
	}
	at, err := h.files().Resolve(ctx, opClosest, targetPath, policy.Enter)
	if err != nil {
		return "", winerr.Wrap(opClosest, targetPath, err)
	}
	if id, ok := win.ParseVolumeID(at.Base); ok {
		return h.unlessGone(ctx, opClosest, targetPath, id)
	}
	if strings.HasPrefix(at.Base, `\\`) {
		return "", notLocal(opClosest, targetPath, at.String())
	}
	return h.volumeOf(ctx, targetPath, at)
}

// SystemDrive implements Extended.
func (b boundHost) SystemDrive() (string, error) {
	const op = "look for the drive of Windows"
	volumes, err := b.host.m.SystemVolumes(b.ctx)
	if err != nil {
		return "", winerr.Wrap(op, "", err)
	}
	for _, id := range volumes {
		paths, err := b.host.m.VolumePaths(b.ctx, id)
		if err != nil {
			return "", winerr.Wrap(op, string(id), err)
		}
		for _, path := range paths {
			if clean, err := winpath.Clean(path); err == nil && len(winpath.Components(clean)) == 0 {
				return clean[:len("C:")], nil
			}
		}
	}
	return "", winerr.New(winerr.NotFound, op, "", "its volumes have no letter; give the path with its drive")
}

func (h host) volumeAt(ctx context.Context, path win.Path) (win.VolumeID, error) {
	location, err := h.m.Location(ctx, path)
	if err != nil {
		return "", err
	}
	id, ok := win.VolumeOf(location)
	if !ok {
		return "", fmt.Errorf("%w: Windows says that it is at %q", winerr.Internal, location)
	}
	return id, nil
}

// volumeOf returns the volume of the deepest existing part of a path on a drive.
func (h host) volumeOf(ctx context.Context, targetPath string, at win.Path) (string, error) {
	for {
		id, err := h.volumeAt(ctx, at)
		switch {
		case err == nil:
			return string(id), nil
		case !answered(err) || errors.Is(err, winerr.Denied):
			return "", winerr.Wrap(opClosest, targetPath, err)
		}
		if at.Rest != "" {
			at, _ = at.Split()
			continue
		}
		parent, ok := winpath.Parent(at.Base)
		if !ok {
			return h.volumeOfDrive(ctx, opClosest, targetPath, at.Base)
		}
		at = win.Following(parent)
	}
}

func (h host) volumeOfDrive(ctx context.Context, op, targetPath, root string) (string, error) {
	id, err := h.m.VolumeOfDrive(ctx, root)
	if errors.Is(err, winerr.NotFound) {
		return "", winerr.As(winerr.NotFound, op, targetPath, err, "this node has no drive "+root)
	}
	return string(id), winerr.Wrap(op, targetPath, err)
}

func notLocal(op, targetPath, remote string) error {
	return winerr.New(winerr.NotFound, op, targetPath, "it leads to %s, which is not a local volume", remote)
}
