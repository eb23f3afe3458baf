package mounter

import "context"

// Usage reports how large and how full a volume is, in bytes.
type Usage struct {
	TotalBytes, UsedBytes, AvailableBytes int64
}

const opStats = "measure volume at"

// Stats measures the volume at a path: where it is staged, a pod's link to it, or a link to a share.
// If nothing is there, the error matches fs.ErrNotExist.
func (m *Mounter) Stats(ctx context.Context, volumePath string) (Usage, error) {
	path, err := m.path(volumePath)
	if err != nil {
		return Usage{}, duringAt(opStats, volumePath, err)
	}
	id, err := m.volumeAt(ctx, path)
	if err != nil {
		return Usage{}, duringAt(opStats, path, err)
	}
	var usage Usage
	if id == "" {
		usage, err = m.node.pathSpace(ctx, path)
	} else {
		usage, err = m.node.volumeSpace(ctx, id)
	}
	return usage, duringAt(opStats, path, err)
}
