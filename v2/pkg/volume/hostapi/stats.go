package api

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

const opStats = "get stats of volume"

// GetVolumeStats asks for the volume as a whole, regardless of user quotas.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getdiskfreespaceexw
func (b boundHost) GetVolumeStats(volumeID string) (total, used int64, err error) {
	ctx, h := b.ctx, b.host
	id, err := parseID(opStats, volumeID)
	if err != nil {
		return 0, 0, err
	}
	space, err := h.m.VolumeSpace(ctx, id)
	if err != nil {
		return 0, 0, failed(opStats, id, err)
	}
	if space.Free < 0 || space.Free > space.Total {
		return 0, 0, winerr.New(winerr.Internal, opStats, string(id), "Windows reports %d free bytes of %d, which is impossible", space.Free, space.Total)
	}
	return space.Total, space.Total - space.Free, nil
}
