package api

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func (h *host) listLocations(ctx context.Context) (map[uint32]DiskLocation, error) {
	return eachDisk(ctx, h, "list disk locations", h.location)
}

// location says where a disk is attached. Disks that are files on another disk have no location.
// A location that the disk does not tell is empty.
func (h *host) location(ctx context.Context, d win.Device) (at DiskLocation, ok bool, err error) {
	descriptor, noDescriptor := h.m.DeviceDescriptor(ctx, d)
	if err := unanswered(ctx, d, "bus", noDescriptor); err != nil {
		return at, false, err
	}
	if descriptor.BusType == win.BusTypeFileBackedVirtual {
		return at, false, nil
	}
	if text, err := h.m.DeviceLocation(ctx, d); err == nil {
		at, ok = parseLocation(text)
	}
	if !ok {
		address, err := h.m.SCSIAddress(ctx, d)
		switch {
		case err == nil:
			at = scsiLocation(address)
		case errors.Is(err, winerr.Unsupported):
			return at, false, nil
		default:
			if err := unanswered(ctx, d, "SCSI address", err); err != nil {
				return at, false, err
			}
			at = DiskLocation{}
		}
	}
	if descriptor.BusType == win.BusTypeNVMe || noDescriptor != nil {
		// The driver makes up target 0 and LUN 0 for each local NVMe disk. A caller that
		// looks for LUN 0 would mistake one for the disk it has attached
		// (azuredisk-csi-driver#2661). A disk that does not tell its bus may be one.
		at.Target, at.LUNID = "", ""
	}
	return at, true, nil
}

// parseLocation reads what Windows shows as a disk's location, such as "Integrated :
// Bus 0 : Device 63667 : Function 30747 : Adapter 1 : Port 0 : Target 0 : LUN 1". Other
// texts, as the path of a VHD, have less than five parts or no adapter.
//
// Bus is the PCI bus of the controller; the SCSI bus is called port.
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-disk
func parseLocation(text string) (at DiskLocation, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) < 5 {
		return at, false
	}
	for _, part := range parts {
		key, value, found := strings.Cut(strings.TrimSpace(part), " ")
		if !found || strings.Contains(value, " ") { // such as "PCI Slot 0"
			continue
		}
		switch key {
		case "Adapter":
			at.Adapter = value
		case "Bus":
			at.Bus = value
		case "Target":
			at.Target = value
		case "LUN":
			at.LUNID = value
		}
	}
	return at, at.Adapter != ""
}

// scsiLocation makes a location from a SCSI address.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddscsi/ns-ntddscsi-_scsi_address
func scsiLocation(address win.SCSIAddress) DiskLocation {
	decimal := func(n uint8) string { return strconv.Itoa(int(n)) }
	return DiskLocation{
		Adapter: decimal(address.Port),
		Bus:     address.BusNumber,
		Target:  decimal(address.Target),
		LUNID:   decimal(address.LUN),
	}
}
