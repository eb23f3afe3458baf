package windows_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// state is the attributes of a disk in words.
func state(a win.DiskAttributes) string {
	words := "online"
	if a.Offline {
		words = "offline"
	}
	if a.ReadOnly {
		words += ", read-only"
	}
	return words
}

// factState answers with the attributes that a disk has now.
func (g *group) factState(a *answer, name string, d scratchDisk) {
	a.Helper()
	attributes, err := g.machine.DiskAttributes(a.Context(), device(d))
	a.must(err)
	a.fact(name, state(attributes))
}

func TestNewDisk(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	// Does a new disk arrive offline or read-only, and does it stay online? Expected: online (files). If not: both are
	// cleared; the change must be seen twice and is repeated if Windows undoes it.
	g.ask("Q-arrival-state", func(a *answer) {
		g.factState(a, "at once", d)
		a.must(g.machine.Sleep(ctx, 2*time.Second))
		g.factState(a, "after 2 s", d)
	})
	// Which bytes does IOCTL_DISK_GET_DRIVE_LAYOUT_EX return for a disk without a table? Expected: no entries, or four
	// empty ones of any style. If not: an entry with a length and another style than RAW is an error, and no new disk
	// can be partitioned.
	g.ask("Q-raw-entries", func(a *answer) {
		layout, err := g.machine.DriveLayout(ctx, device(d))
		a.must(err)
		a.fact("style", layout.Style)
		a.fact("entries", len(layout.Partitions))
		used := 0
		for _, p := range layout.Partitions {
			if p.Length != 0 {
				used++
			}
		}
		a.fact("entries with a length", used)
	})
	// Which location and identity do file-backed disks have? Expected: bus type 15, no page 83. If not:
	// csi-proxy-verify refuses to use its own disks.
	g.ask("Q-file-identity", func(a *answer) {
		descriptor, err := g.machine.DeviceDescriptor(ctx, device(d))
		a.must(err)
		a.fact("bus type", uint32(descriptor.BusType))
		a.fact("serial number", descriptor.Serial != "")
		a.measured("vendor and product", descriptor.Vendor+", "+descriptor.Product)
		identifiers, err := g.machine.DeviceIdentifiers(ctx, device(d))
		a.fact("page 83", err)
		for _, identifier := range identifiers {
			a.measured("identifier", fmt.Sprintf("type %d, code set %d, %d bytes", identifier.Type, identifier.CodeSet, len(identifier.Value)))
		}
		_, err = g.machine.DeviceLocation(ctx, device(d))
		a.fact("location", err)
		_, err = g.machine.SCSIAddress(ctx, device(d))
		a.fact("SCSI address", err)
		locations, err := g.disks.ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{})
		a.must(err)
		a.fact("has a location for drivers", locations.DiskLocations[d.Number()] != nil)
	})
	var raw []fact // of a disk without a table
	if g.raw != nil {
		var err error
		raw, err = g.raw(device(d))
		g.must(err)
	}
	// Does IOCTL_DISK_CREATE_DISK add a reserved partition, how large, and when? Expected: none, or one that ends at
	// 16 MiB. If not: the table is read just before it is written; a reserved partition is kept; a refused table is
	// rebuilt, three times.
	g.ask("Q-msr", func(a *answer) {
		a.must(g.makeWritable(a, d))
		began := g.machine.Now()
		a.must(g.machine.CreateDisk(ctx, device(d), win.NewGUID()))
		when := "at once"
		var reserved *win.Partition
		limit := win.Backoff{First: 50 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 3 * time.Second}
		_, err := win.Poll(ctx, g.machine, limit, func(waited time.Duration) (bool, error) {
			layout, err := g.machine.DriveLayout(ctx, device(d))
			if err != nil {
				return false, err
			}
			if waited == 0 {
				a.fact("style", layout.Style)
				a.fact("usable range begins at", layout.UsableOffset)
				a.fact("usable range ends before the end by", d.Size()-layout.UsableEnd())
				a.fact("entries of the table", layout.MaxPartitions)
			}
			for _, p := range layout.Partitions {
				if p.Type == win.PartitionMSR {
					reserved = &p
				}
			}
			if waited > 0 {
				when = "later"
			}
			return reserved != nil, nil
		})
		a.must(err)
		if reserved == nil {
			a.fact("reserved partition", "none within 3 s")
			return
		}
		a.fact("reserved partition", when)
		a.fact("its offset", reserved.Offset)
		a.fact("its size", reserved.Length)
		a.measured("after", g.machine.Now().Sub(began))
	})
	// The buffers in internal/win/winlayout/testdata are what Windows returns. The log has the bytes of each.
	g.ask("Q-buffers", func(a *answer) {
		if g.raw == nil {
			a.Skip("the bytes are those of the emulator")
		}
		facts, err := g.raw(device(d))
		a.must(err)
		for _, fact := range append(raw, facts...) {
			a.measured(fact.name, fact.value)
		}
	})
}

// makeWritable brings a disk of ours online and makes it writable.
func (g *group) makeWritable(a *answer, d scratchDisk) error {
	return g.machine.SetDiskAttributes(a.Context(), device(d), win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
}

func TestForeign(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	// Is a disk that begins with a foreign file system shown as RAW? Expected: yes. If not: an empty MBR table is
	// checked the same way; a disk with any other table is not written to.
	g.ask("Q-raw-layout", func(a *answer) {
		// What a disk of a Linux pod begins with.
		sector := make([]byte, 512)
		copy(sector, "XFSB")
		a.must(d.Write(ctx, 0, sector))
		a.must(g.machine.UpdateDisk(ctx, device(d)))
		layout, err := g.machine.DriveLayout(ctx, device(d))
		a.must(err)
		a.fact("style", layout.Style)
		a.fact("entries", len(layout.Partitions))
		_, err = g.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.Number()})
		a.fact("PartitionDisk", winerr.KindOf(err))
	})
}

func TestSectors(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 4096)
	// Are usable range, alignment and sizes right for sectors of 4096 bytes? Expected: yes. If not: they are read from
	// the table, not computed; Windows refuses what does not fit.
	g.ask("Q-4k-sectors", func(a *answer) {
		geometry, err := g.machine.DiskGeometry(ctx, device(d))
		a.must(err)
		a.fact("bytes per sector", geometry.BytesPerSector)
		id := g.newFormatted(a.T, d)
		layout, err := g.machine.DriveLayout(ctx, device(d))
		a.must(err)
		a.fact("usable range begins at", layout.UsableOffset)
		a.fact("usable range ends before the end by", d.Size()-layout.UsableEnd())
		p, err := g.dataPartition(ctx, d.Number())
		a.must(err)
		a.fact("data begins at", p.Offset)
		a.fact("data ends before the usable end by", layout.UsableEnd()-p.End())
		ntfs, err := g.machine.NTFSVolumeData(ctx, id)
		a.must(err)
		a.fact("sectors of NTFS have", ntfs.BytesPerSector)
		a.fact("sectors that NTFS leaves", p.Length/int64(ntfs.BytesPerSector)-ntfs.Sectors)
	})
}

func TestMachine(t *testing.T) {
	g := newGroup(t)
	ctx := g.Context()
	// GetBIOSSerialNumber equals (Get-CimInstance Win32_BIOS).SerialNumber on Azure, Google Compute, AWS, vSphere and
	// a physical machine.
	g.ask("Q-bios-serial", func(a *answer) {
		table, err := g.machine.FirmwareTable(ctx)
		a.fact("firmware table", err)
		a.measured("its size", len(table))
		wmi, err := g.machine.BIOSSerialNumber(ctx)
		a.fact("Win32_BIOS", err)
		serial, err := g.serial(ctx)
		a.must(err)
		a.fact("GetBIOSSerialNumber equals it", wmi == serial) // never the number itself
	})
	// With SAN policy "offline shared", does a shared disk arrive offline and read-only? If not: as Q-arrival-state.
	g.ask("Q-san-policy", func(a *answer) {
		policy, err := g.machine.SANPolicy(ctx)
		a.must(err)
		a.measured("policy of this machine", policy)
	})
	// Only asks the disks of the machine for what they report. Values differ from machine to machine.
	devices, err := g.machine.DiskDevices(ctx)
	g.must(err)
	// Which drivers have StorageDeviceLocationProperty, and is its text ASCII? If not: UTF-16 is read too;
	// IOCTL_SCSI_GET_ADDRESS replaces a text that does not fit the pattern.
	g.ask("Q-location-property", func(a *answer) {
		for _, d := range devices {
			descriptor, err := g.machine.DeviceDescriptor(ctx, d)
			if err != nil {
				a.measured("a disk without a descriptor", err)
				continue
			}
			location, err := g.machine.DeviceLocation(ctx, d)
			value := text(err)
			if err == nil {
				value = fmt.Sprintf("%q", location)
				if descriptor.BusType == win.BusTypeFileBackedVirtual {
					value = "the path of a file"
				}
			}
			address, err := g.machine.SCSIAddress(ctx, d)
			scsi := text(err)
			if err == nil {
				scsi = fmt.Sprintf("port %d, path %d, target %d, LUN %d, bus %q", address.Port, address.Path, address.Target, address.LUN, address.BusNumber)
			}
			a.measured(fmt.Sprintf("bus %d, %s %s", descriptor.BusType, descriptor.Vendor, descriptor.Product), value+"; SCSI "+scsi)
		}
	})
	// Which identifiers does page 83 of an NVMe disk have on Azure, Google Compute and AWS, and is the serial number
	// made of the EUI-64 or NGUID? If not: the EUI-64 and NGUID of pkg/node are empty.
	g.ask("Q-nvme-ids", func(a *answer) {
		found := false
		for _, d := range devices {
			descriptor, err := g.machine.DeviceDescriptor(ctx, d)
			if err != nil || descriptor.BusType != win.BusTypeNVMe {
				continue
			}
			found = true
			identifiers, err := g.machine.DeviceIdentifiers(ctx, d)
			a.measured("page 83 of an NVMe disk", err)
			for _, identifier := range identifiers {
				a.measured("identifier", fmt.Sprintf("type %d, code set %d, association %d, %d bytes", identifier.Type, identifier.CodeSet, identifier.Association, len(identifier.Value)))
			}
			a.measured("serial number", fmt.Sprintf("%d characters", len(descriptor.Serial)))
		}
		if !found {
			a.Skip("this machine has no NVMe disk")
		}
	})
}
