package api

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const opListLocations = "list disk locations"

// ListDiskLocations implements HostAPI.
func (d DiskAPI) ListDiskLocations() (map[uint32]DiskLocation, error) {
	ctx, h := d.bound()
	found, complete, err := eachDisk(ctx, h, opListLocations, h.locate)
	if err != nil {
		return nil, err
	}
	locations := make(map[uint32]DiskLocation, len(found))
	for number, disk := range found {
		locations[number] = disk.DiskLocation
		complete = complete && !disk.unsure
	}
	if err := h.addAzureLUNs(ctx, found, complete, locations); err != nil {
		return nil, winerr.Wrap(opListLocations, "", err)
	}
	return locations, nil
}

type located struct {
	DiskLocation
	azure *diskid.AzureDisk // nil if it is not an NVMe disk of Azure
	// unsure says that the disk may be an NVMe disk of Azure with any LUN: it did not tell its bus
	// and model, or the address that its LUN is read from.
	unsure bool
}

// locate says where a disk is attached. Disks that are files on another disk have no location.
// A location that the disk does not report is empty.
func (h *host) locate(ctx context.Context, d win.Device) (at located, ok bool, err error) {
	descriptor, noDescriptor := h.m.DeviceDescriptor(ctx, d)
	if err := unanswered(ctx, d, "bus", noDescriptor); err != nil {
		return at, false, err
	}
	if descriptor.BusType == win.BusTypeFileBackedVirtual || diskprobe.NoMedium(ctx, h.m, d, descriptor) {
		return at, false, nil
	}
	at.unsure = noDescriptor != nil
	if text, err := h.m.DeviceLocation(ctx, d); err == nil {
		at.DiskLocation, ok = parseLocation(text)
	}
	azure, byAddress := diskid.IsAzure(descriptor)
	if azure {
		at.azure = &diskid.AzureDisk{Model: diskid.Model(descriptor), Device: d}
	}
	if !ok || (azure && byAddress) {
		address, err := h.m.SCSIAddress(ctx, d)
		if err := unanswered(ctx, d, "SCSI address", err); err != nil {
			return at, false, err
		}
		switch {
		case err == nil && azure:
			at.azure.Address = &address
		case errors.Is(err, winerr.Unsupported) && !azure:
			return at, false, nil
		case err != nil && azure && byAddress && !errors.Is(err, winerr.Unsupported):
			at.unsure = true
		}
		switch {
		case !ok && err == nil:
			at.DiskLocation = scsiLocation(address)
		case !ok:
			at.DiskLocation = DiskLocation{}
		}
	}
	if descriptor.BusType == win.BusTypeNVMe || noDescriptor != nil {
		// The driver makes up target 0 and LUN 0 for each local NVMe disk. A caller that
		// looks for LUN 0 would mistake one for the disk it has attached
		// (azuredisk-csi-driver#2661). A disk that does not report its bus may be one.
		at.Target, at.LUNID = "", ""
	}
	return at, true, nil
}

// addAzureLUNs fills in the LUNs of NVMe disks on Azure, where drivers look for nothing else. The
// disk of Windows has none, and if Windows does not say which one that is, no disk has. Nor has
// one unless the list is complete: AzureLUNs finds the LUNs that two disks have, and without the
// second disk such a LUN looks unique.
func (h *host) addAzureLUNs(ctx context.Context, found map[uint32]located, complete bool, locations map[uint32]DiskLocation) error {
	var numbers []uint32
	var disks []diskid.AzureDisk
	for number, disk := range found {
		if disk.azure != nil {
			numbers, disks = append(numbers, number), append(disks, *disk.azure)
		}
	}
	if len(disks) == 0 {
		return nil
	}
	if !complete {
		klog.FromContext(ctx).Info("A disk did not answer, so NVMe disks have no LUN")
		return nil
	}
	system, err := diskid.System(ctx, h.m)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		klog.FromContext(ctx).Error(err, "Windows did not say which disks it runs from, so NVMe disks have no LUN")
		return nil
	}
	for i, number := range numbers {
		disks[i].System = slices.Contains(system, number)
	}
	for i, lun := range diskid.AzureLUNs(disks) {
		at := locations[numbers[i]]
		at.LUNID = lun
		locations[numbers[i]] = at
	}
	return nil
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
