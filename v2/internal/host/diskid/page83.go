// Package diskid reads what identifies a disk from what its driver reports, and finds the disks that
// Windows runs from.
package diskid

import (
	"encoding/hex"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Page83 picks the identifier that drivers know a disk by: the first that identifies the device
// itself and is bytes or ASCII text. They compare it as a string, so a "better" one further down
// does not count, and spaces stay: on Google Compute Engine the text is "Google  " and the name of
// the disk.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_id_descriptor
func Page83(identifiers []win.DeviceIdentifier) string {
	for _, id := range identifiers {
		switch {
		case id.Association != 0:
		case id.CodeSet == win.CodeSetASCII:
			return string(id.Value)
		case id.CodeSet == win.CodeSetBinary:
			return hex.EncodeToString(id.Value)
		}
	}
	return ""
}
