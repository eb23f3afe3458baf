package api

import (
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

const (
	opLookup  = "get volume mounted at"
	opClosest = "get closest volume of"

	// maxHops is how many links Windows itself follows.
	maxHops = 63
)

// GetVolumeIDFromTargetPath follows links, as from a pod's folder to the folder where the
// volume is mounted. Only the data of the links is read, so it works as well if the volume
// is gone or has no file system.
func (h host) GetVolumeIDFromTargetPath(targetPath string) (string, error) {
	path := targetPath
	for range maxHops {
		if isRoot(path) {
			return h.volumeOfDrive(opLookup, targetPath, path)
		}
		next, err := h.follow(h.ctx, path)
		switch {
		case errors.Is(err, winerr.NotFound): // nothing there, or an ordinary folder
			// aws-ebs takes "because it does not exist" for "not mounted yet", and any
			// other text for a failure. The words are PowerShell's, which the first
			// releases ran.
			return "", winerr.New(winerr.NotFound, opLookup, targetPath,
				"no mounted volume can be found because it does not exist: %s: %w", path, err)
		case err != nil:
			return "", winerr.Wrap(opLookup, targetPath, err)
		case next.remote != "":
			return "", notLocal(opLookup, targetPath, path, next)
		case next.volume != "" && next.below:
			return "", winerr.New(winerr.NotFound, opLookup, targetPath, "%s leads to a folder of volume %s, not to the volume itself", path, next.volume)
		case next.volume != "":
			return string(next.volume), nil
		}
		path = next.path
	}
	return "", tooManyHops(opLookup, targetPath)
}

// GetClosestVolumeIDFromTargetPath leaves it to Windows to find the volume of a path.
// Where Windows cannot, because the path does not exist yet or a volume on the way does
// not answer, links are followed and the path is walked upwards until something is known.
func (h host) GetClosestVolumeIDFromTargetPath(targetPath string) (string, error) {
	path := targetPath
	for hops := 0; hops < maxHops; {
		id, err := h.m.VolumeOfPath(h.ctx, path)
		switch {
		case err == nil:
			return string(id), nil
		case !answered(err) || errors.Is(err, winerr.Denied):
			return "", winerr.Wrap(opClosest, targetPath, err)
		case isRoot(path):
			return h.volumeOfDrive(opClosest, targetPath, path)
		}
		next, err := h.follow(h.ctx, path)
		switch {
		case err != nil && !answered(err):
			return "", winerr.Wrap(opClosest, targetPath, err)
		case err != nil:
			path, _ = winpath.Parent(path) // no link there, or none that can be read
		case next.remote != "":
			return "", notLocal(opClosest, targetPath, path, next)
		case next.volume != "":
			return string(next.volume), nil
		default:
			path = next.path
			hops++
		}
	}
	return "", tooManyHops(opClosest, targetPath)
}

func isRoot(path string) bool {
	_, hasParent := winpath.Parent(path)
	return !hasParent
}

// volumeOfDrive returns the volume that has a drive letter.
func (h host) volumeOfDrive(op, targetPath, root string) (string, error) {
	id, err := h.m.VolumeAtRoot(h.ctx, root)
	if errors.Is(err, winerr.NotFound) {
		return "", winerr.As(winerr.NotFound, op, targetPath, err, "this node has no drive "+root)
	}
	return string(id), winerr.Wrap(op, targetPath, err)
}

func notLocal(op, targetPath, path string, next hop) error {
	return winerr.New(winerr.NotFound, op, targetPath, "%s leads to %s, which is not a local volume", path, next.remote)
}

func tooManyHops(op, targetPath string) error {
	return winerr.As(winerr.InUse, op, targetPath, winerr.CantResolveFilename, "")
}
