package api

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func (h *host) listIDs(ctx context.Context) (map[uint32]DiskIDs, error) {
	return eachDisk(ctx, h, "list disk ids", func(ctx context.Context, d win.Device) (ids DiskIDs, ok bool, err error) {
		descriptor, err := h.m.DeviceDescriptor(ctx, d)
		if err != nil && !unknown(err) {
			return ids, false, err
		}
		identifiers, err := h.m.DeviceIdentifiers(ctx, d)
		if err != nil && !unknown(err) {
			return ids, false, err
		}
		return DiskIDs{Page83: page83(identifiers), SerialNumber: descriptor.Serial}, true, nil
	})
}

// unknown reports whether a driver does not know a property at all. USB sticks and many
// virtual disks have no page 83, for instance; they are disks all the same.
func unknown(err error) bool { return errors.Is(err, winerr.Unsupported) }

// page83 picks the identifier that drivers know a disk by: the first that identifies the device
// itself and is bytes or ASCII text. They compare it as a string, so a "better" one further down
// does not count, and spaces stay: on Google Compute Engine the text is "Google  " and the name of
// the disk.
// https://learn.microsoft.com/windows/win32/api/winioctl/ns-winioctl-storage_device_id_descriptor
func page83(identifiers []win.DeviceIdentifier) string {
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
