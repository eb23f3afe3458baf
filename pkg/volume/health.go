package volume

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Health is what Windows knows about a volume and its disk.
type Health = volumeapi.Health

// RepairOptions say what a repair may do.
type RepairOptions = volumeapi.RepairOptions

// Health asks what Windows knows of a volume: the dirty bit, what NTFS has noted, and the health of its disks. It
// changes nothing and is quick. What could not be found out is in Unknown, so that silence never means health. A volume
// that is not there is fs.ErrNotExist.
//
// It asks FSCTL_IS_VOLUME_DIRTY, MSFT_Volume and MSFT_PhysicalDisk:
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_is_volume_dirty
func (v *Volume) Health(ctx context.Context, volumeID string) (volumeapi.Health, error) {
	return v.keep(ctx, "get health of volume", volumeID, func(k volumeapi.HealthKeeper) (volumeapi.Health, error) { return k.Health(volumeID) })
}

// Scan looks at all structures of an NTFS while it is in use, and returns the health after that. It can take hours. If
// ctx ends first the scan goes on, and the next call joins it. It refuses volumes of the system disk (fs.ErrPermission)
// and other file systems (errors.ErrUnsupported).
//
// It is MSFT_Volume.Repair with Scan:
// https://learn.microsoft.com/windows-hardware/drivers/storage/repair-msft-volume
func (v *Volume) Scan(ctx context.Context, volumeID string) (volumeapi.Health, error) {
	return v.keep(ctx, "scan volume", volumeID, func(k volumeapi.HealthKeeper) (volumeapi.Health, error) { return k.Scan(volumeID) })
}

// Repair mends an NTFS and returns the health after that, which may still not be well: a scan, unless the damage is
// known, and a spot fix, which takes the volume away for seconds; or with Offline everything at once, which can take
// hours. A volume has one repair at a time. If ctx ends first the repair goes on, and the next call joins it.
//
// It refuses what Scan refuses, and a volume that is mounted anywhere unless Dismount is set.
// https://learn.microsoft.com/windows-hardware/drivers/storage/repair-msft-volume
func (v *Volume) Repair(ctx context.Context, volumeID string, options volumeapi.RepairOptions) (volumeapi.Health, error) {
	return v.keep(ctx, "repair volume", volumeID, func(k volumeapi.HealthKeeper) (volumeapi.Health, error) { return k.Repair(volumeID, options) })
}

func (v *Volume) keep(ctx context.Context, op, id string, do func(volumeapi.HealthKeeper) (volumeapi.Health, error)) (volumeapi.Health, error) {
	if err := checkID(op, id); err != nil {
		return volumeapi.Health{}, err
	}
	out, err := hostctx.Fill(ctx, op, v.host, &id, func(h volumeapi.HostAPI, out *volumeapi.Health) (err error) {
		keeper, ok := h.(volumeapi.HealthKeeper)
		if !ok {
			return winerr.New(winerr.Unsupported, op, id, "the host cannot do it; it is not a volumeapi.HealthKeeper")
		}
		*out, err = do(keeper)
		return winerr.Wrap(op, id, err)
	})
	return *out, err
}
