package volume

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Health is what Windows knows about a volume and its disk.
type Health = volumeapi.Health

// Health implements Extended.
//
// It asks FSCTL_IS_VOLUME_DIRTY, MSFT_Volume and MSFT_PhysicalDisk:
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_is_volume_dirty
func (v *Volume) Health(ctx context.Context, volumeID string) (volumeapi.Health, error) {
	const op = "get health of volume"
	if err := checkID(op, volumeID); err != nil {
		return volumeapi.Health{}, err
	}
	out, err := hostctx.Fill(ctx, op, v.host, &volumeID, func(h volumeapi.HostAPI, out *volumeapi.Health) (err error) {
		x, err := hostctx.Extended[volumeapi.Extended](h, op, volumeID)
		if err != nil {
			return err
		}
		*out, err = x.Health(volumeID)
		return winerr.Wrap(op, volumeID, err)
	})
	return *out, err
}
