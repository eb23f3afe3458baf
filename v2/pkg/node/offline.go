package node

import (
	"context"
	"errors"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// sanPolicy asks for the policy. It stays as it is if Windows has none.
func (l *lookup) sanPolicy(ctx context.Context, policy *win.SANPolicy) error {
	found, err := l.m.SANPolicy(ctx)
	if err == nil {
		*policy = found
	}
	if errors.Is(err, winerr.Unsupported) {
		return nil
	}
	return err
}

func explainOffline(policy win.SANPolicy, disks []Disk) {
	for i := range disks {
		disk := &disks[i]
		if disk.Online == nil || *disk.Online {
			continue
		}
		if twin, ok := onlineTwin(*disk, disks); ok {
			disk.OfflineReason = fmt.Sprintf("collision with disk %d", twin)
			continue
		}
		disk.OfflineReason = OfflineUnknown
		if keepsOffline(policy, disk.Bus) {
			disk.OfflineReason = OfflinePolicy
		}
	}
}

// onlineTwin finds a disk that is online and has the same id. Windows keeps the second one
// offline (csi-proxy#287).
func onlineTwin(disk Disk, disks []Disk) (number uint32, ok bool) {
	for _, other := range disks {
		if disk.TableID != "" && other.TableID == disk.TableID && other.Number != nil && other.Online != nil && *other.Online {
			return *other.Number, true
		}
	}
	return 0, false
}

// tableID is the id by which Windows distinguishes disks, or empty.
func tableID(layout win.DriveLayout) string {
	switch {
	case layout.Style == win.StyleGPT && layout.DiskID != win.GUID{}:
		return layout.DiskID.String()
	case layout.Style == win.StyleMBR && layout.Signature != 0:
		return fmt.Sprintf("%08x", layout.Signature)
	default:
		return ""
	}
}

// keepsOffline reports whether a policy keeps new disks on a bus offline. The default of Windows
// Server is to do so with shared buses.
// https://learn.microsoft.com/windows-server/administration/windows-commands/san
func keepsOffline(policy win.SANPolicy, bus string) bool {
	shared := bus == "scsi" || bus == "sas" || bus == "iscsi" || bus == "fibre"
	switch policy {
	case win.SANOfflineAll:
		return true
	case win.SANOfflineShared, win.SANDefault:
		return shared
	case win.SANOfflineInternal:
		return !shared
	default:
		return false
	}
}
