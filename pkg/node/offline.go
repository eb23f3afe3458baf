package node

import (
	"context"
	"fmt"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// explainOffline says of each disk that is offline why.
func (l *lookup) explainOffline(ctx context.Context, disks []Disk) {
	var policy *win.SANPolicy
	for i := range disks {
		disk := &disks[i]
		if disk.Online == nil || *disk.Online {
			continue
		}
		if twin, ok := onlineTwin(*disk, disks); ok {
			disk.OfflineReason = fmt.Sprintf("collision with disk %d", twin)
			continue
		}
		if policy == nil {
			current, err := l.m.SANPolicy(ctx)
			if err != nil {
				l.problems.addUnlessUnsupported("SAN policy", err)
				current = win.SANOnlineAll
			}
			policy = &current
		}
		disk.OfflineReason = OfflineUnknown
		if keepsOffline(*policy, disk.Bus) {
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
