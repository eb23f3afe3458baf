package mounter

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
)

// Usage tells how large and how full a volume is, in bytes.
type Usage struct {
	TotalBytes, UsedBytes, AvailableBytes int64
}

const opStats = "measure volume at"

// Stats measures the volume at a path: where it is staged, a pod's link to it, or a link to a share.
// If nothing is there, the error matches fs.ErrNotExist.
func (m *Mounter) Stats(ctx context.Context, volumePath string) (Usage, error) {
	path, err := Path(volumePath)
	if err != nil {
		return Usage{}, during(opStats, volumePath, err)
	}
	id, err := m.volumeAt(ctx, path)
	if err != nil {
		return Usage{}, during(opStats, path, err)
	}
	var usage Usage
	if id == "" {
		usage, err = m.measureShare(path)
	} else {
		usage, err = m.node.volumeSpace(ctx, id)
	}
	return usage, during(opStats, path, err)
}

// measureShare asks Windows from this process: the published API does not measure shares. In the
// mode Daemon the container needs the kubelet's directory mounted, as it is for CSI drivers.
func (m *Mounter) measureShare(path string) (Usage, error) {
	total, available, err := m.spaceAt(path)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return Usage{}, newError(failure.Unsupported, "measure share at", path, "this system cannot; on an emulated node use the option MeasureShares")
	case err != nil:
		return Usage{}, during("measure share at", path, err)
	}
	return Usage{TotalBytes: total, UsedBytes: total - available, AvailableBytes: available}, nil
}
