package verify

import (
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/verify/answer"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

// groups are the questions in the order in which they are asked.
var groups = []group{
	{"this process", []string{"Q-pipe-ssh", "Q-pipe-remote", "Q-hostprocess", "Q-go-files"}, askProcess},
	{"this machine", []string{"Q-bios-serial", "Q-san-policy", "Q-location-property", "Q-nvme-ids"}, askMachine},
	{"services of its own", []string{"Q-service-starting", "Q-service-paused", "Q-service-file", "Q-dependents"}, askServices},
	{"names and links", []string{"Q-case", "Q-long-paths", "Q-link-handle", "Q-swap", "Q-rmdir-open", "Q-kubelet-link"}, askPaths},
	{"a new disk", []string{"Q-arrival-state", "Q-raw-entries", "Q-file-identity", "Q-msr", "Q-buffers"}, askNewDisk},
	{"a new volume", []string{"Q-volume-arrival", "Q-volumes-listed", "Q-unformatted", "Q-storage-cache", "Q-format-codes", "Q-root-access"}, askNewVolume},
	{"a mounted folder", []string{"Q-mount-handle", "Q-link-time", "Q-mount-listed", "Q-mount-race", "Q-mount-nonempty", "Q-dont-reparse", "Q-offline-guid", "Q-offline-busy", "Q-remove-link", "Q-stale-volume", "Q-mount-remembers", "Q-unmount-gone"}, askMount},
	{"an offline disk", []string{"Q-offline-read", "Q-arrival-data", "Q-readonly-flag"}, askOffline},
	{"a disk with data that comes back", []string{"Q-late-volume", "Q-raw-moment"}, askReturn},
	{"a disk and its copy", []string{"Q-collision"}, askClone},
	{"a disk that grows", []string{"Q-grow-range", "Q-extend"}, askGrowth},
	{"a disk that grows by the storage service", []string{"Q-partition-resize"}, askResize},
	{"a disk with 4096-byte sectors", []string{"Q-4k-sectors"}, askSectors},
	{"a disk of another system", []string{"Q-raw-layout"}, askForeign},
	{"cluster sizes", []string{"Q-cluster-sizes"}, askClusters},
	{"a share", []string{"Q-smb-errors", "Q-smb-parameters", "Q-smb-credential", "Q-smb-case", "Q-smb-privacy", "Q-smb-localpath", "Q-smb-credentials-kept", "Q-smb-domain", "Q-smb-remove-busy", "Q-path-space"}, askShare},
	{"an iSCSI portal", []string{"Q-iscsi-no-service", "Q-iscsi-layouts", "Q-iscsi-refresh", "Q-iscsi-dead-portal"}, askPortal},
}

// askProcess asks what only the site knows.
func askProcess(b *bench) {
	for _, id := range []string{"Q-pipe-ssh", "Q-pipe-remote", "Q-hostprocess", "Q-go-files"} {
		if do := b.Probes[id]; do != nil {
			b.ask(id, do)
		}
	}
}

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

func askNewDisk(b *bench) {
	ctx, d := b.Context(), b.newDisk(512)
	b.ask("Q-arrival-state", func(a *Ask) {
		attributes, err := b.machine.DiskAttributes(ctx, device(d))
		a.Must(err)
		a.Fact("at once", state(attributes))
		a.Must(b.machine.Sleep(ctx, 2*time.Second))
		attributes, err = b.machine.DiskAttributes(ctx, device(d))
		a.Must(err)
		a.Fact("after 2 s", state(attributes))
	})
	b.ask("Q-raw-entries", func(a *Ask) {
		layout, err := b.machine.DriveLayout(ctx, device(d))
		a.Must(err)
		a.Fact("style", layout.Style)
		a.Fact("entries", len(layout.Partitions))
		used := 0
		for _, p := range layout.Partitions {
			if p.Length != 0 {
				used++
			}
		}
		a.Fact("entries with a length", used)
	})
	b.ask("Q-file-identity", func(a *Ask) {
		descriptor, err := b.machine.DeviceDescriptor(ctx, device(d))
		a.Must(err)
		a.Fact("bus type", uint32(descriptor.BusType))
		a.Fact("serial number", descriptor.Serial != "")
		a.Measured("vendor and product", descriptor.Vendor+", "+descriptor.Product)
		identifiers, err := b.machine.DeviceIdentifiers(ctx, device(d))
		a.Fact("page 83", err)
		for _, identifier := range identifiers {
			a.Measured("identifier", fmt.Sprintf("type %d, code set %d, %d bytes", identifier.Type, identifier.CodeSet, len(identifier.Value)))
		}
		_, err = b.machine.DeviceLocation(ctx, device(d))
		a.Fact("location", err)
		_, err = b.machine.SCSIAddress(ctx, device(d))
		a.Fact("SCSI address", err)
		locations, err := b.disks.ListDiskLocations(ctx, &disk.ListDiskLocationsRequest{})
		a.Must(err)
		a.Fact("has a location for drivers", locations.DiskLocations[d.Number()] != nil)
	})
	var raw []answer.Fact // of a disk without a table
	if b.Raw != nil {
		var err error
		raw, err = b.Raw(ctx, device(d))
		b.must(err)
	}
	b.ask("Q-msr", func(a *Ask) {
		a.Must(b.makeWritable(a, d))
		began := b.machine.Now()
		a.Must(b.machine.CreateDisk(ctx, device(d), win.NewGUID()))
		when := "at once"
		var reserved *win.Partition
		limit := win.Backoff{First: 50 * time.Millisecond, Longest: 200 * time.Millisecond, Limit: 3 * time.Second}
		_, err := win.Poll(ctx, b.machine, limit, func(waited time.Duration) (bool, error) {
			layout, err := b.machine.DriveLayout(ctx, device(d))
			if err != nil {
				return false, err
			}
			if waited == 0 {
				a.Fact("style", layout.Style)
				a.Fact("usable range begins at", layout.UsableOffset)
				a.Fact("usable range ends before the end by", d.Size()-layout.UsableEnd())
				a.Fact("entries of the table", layout.MaxPartitions)
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
		a.Must(err)
		if reserved == nil {
			a.Fact("reserved partition", "none within 3 s")
			return
		}
		a.Fact("reserved partition", when)
		a.Fact("its offset", reserved.Offset)
		a.Fact("its size", reserved.Length)
		a.Measured("after", b.machine.Now().Sub(began))
	})
	b.ask("Q-buffers", func(a *Ask) {
		if b.Raw == nil {
			a.Skip("the bytes are those of the emulator")
		}
		facts, err := b.Raw(ctx, device(d))
		a.Must(err)
		for _, fact := range append(raw, facts...) {
			a.Measured(fact.Name, fact.Value)
		}
	})
}

// makeWritable brings a disk of ours online and makes it writable.
func (b *bench) makeWritable(a *Ask, d Disk) error {
	return b.machine.SetDiskAttributes(a.Context(), device(d), win.DiskAttributes{}, win.DiskAttributes{Offline: true, ReadOnly: true})
}

func askForeign(b *bench) {
	ctx, d := b.Context(), b.newDisk(512)
	b.ask("Q-raw-layout", func(a *Ask) {
		// What a disk of a Linux pod begins with.
		sector := make([]byte, 512)
		copy(sector, "XFSB")
		a.Must(d.Write(ctx, 0, sector))
		a.Must(b.machine.UpdateDisk(ctx, device(d)))
		layout, err := b.machine.DriveLayout(ctx, device(d))
		a.Must(err)
		a.Fact("style", layout.Style)
		a.Fact("entries", len(layout.Partitions))
		_, err = b.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.Number()})
		a.Fact("PartitionDisk", winerr.KindOf(err))
	})
}

func askSectors(b *bench) {
	ctx, d := b.Context(), b.newDisk(4096)
	b.ask("Q-4k-sectors", func(a *Ask) {
		geometry, err := b.machine.DiskGeometry(ctx, device(d))
		a.Must(err)
		a.Fact("bytes per sector", geometry.BytesPerSector)
		id := b.newFormatted(a.T, d)
		layout, err := b.machine.DriveLayout(ctx, device(d))
		a.Must(err)
		a.Fact("usable range begins at", layout.UsableOffset)
		a.Fact("usable range ends before the end by", d.Size()-layout.UsableEnd())
		p, err := b.dataPartition(ctx, d.Number())
		a.Must(err)
		a.Fact("data begins at", p.Offset)
		a.Fact("data ends before the usable end by", layout.UsableEnd()-p.End())
		ntfs, err := b.machine.NTFSVolumeData(ctx, id)
		a.Must(err)
		a.Fact("sectors of NTFS have", ntfs.BytesPerSector)
		a.Fact("sectors that NTFS leaves", p.Length/int64(ntfs.BytesPerSector)-ntfs.Sectors)
	})
}

func askMachine(b *bench) {
	ctx := b.Context()
	b.ask("Q-bios-serial", func(a *Ask) {
		table, err := b.machine.FirmwareTable(ctx)
		a.Fact("firmware table", err)
		a.Measured("its size", len(table))
		wmi, err := b.machine.BIOSSerialNumber(ctx)
		a.Fact("Win32_BIOS", err)
		serial, err := b.serial(ctx)
		a.Must(err)
		a.Fact("GetBIOSSerialNumber equals it", wmi == serial) // never the number itself
	})
	b.ask("Q-san-policy", func(a *Ask) {
		policy, err := b.machine.SANPolicy(ctx)
		a.Must(err)
		a.Measured("policy of this machine", policy)
	})
	// Only asks the disks of the machine for what they report. Values differ from machine to machine.
	devices, err := b.machine.DiskDevices(ctx)
	b.must(err)
	b.ask("Q-location-property", func(a *Ask) {
		for _, d := range devices {
			descriptor, err := b.machine.DeviceDescriptor(ctx, d)
			if err != nil {
				a.Measured("a disk without a descriptor", err)
				continue
			}
			location, err := b.machine.DeviceLocation(ctx, d)
			value := text(err)
			if err == nil {
				value = fmt.Sprintf("%q", location)
				if descriptor.BusType == win.BusTypeFileBackedVirtual {
					value = "the path of a file"
				}
			}
			address, err := b.machine.SCSIAddress(ctx, d)
			scsi := text(err)
			if err == nil {
				scsi = fmt.Sprintf("port %d, path %d, target %d, LUN %d, bus %q", address.Port, address.Path, address.Target, address.LUN, address.BusNumber)
			}
			a.Measured(fmt.Sprintf("bus %d, %s %s", descriptor.BusType, descriptor.Vendor, descriptor.Product), value+"; SCSI "+scsi)
		}
	})
	b.ask("Q-nvme-ids", func(a *Ask) {
		found := false
		for _, d := range devices {
			descriptor, err := b.machine.DeviceDescriptor(ctx, d)
			if err != nil || descriptor.BusType != win.BusTypeNVMe {
				continue
			}
			found = true
			identifiers, err := b.machine.DeviceIdentifiers(ctx, d)
			a.Measured("page 83 of an NVMe disk", err)
			for _, identifier := range identifiers {
				a.Measured("identifier", fmt.Sprintf("type %d, code set %d, association %d, %d bytes", identifier.Type, identifier.CodeSet, identifier.Association, len(identifier.Value)))
			}
			a.Measured("serial number", fmt.Sprintf("%d characters", len(descriptor.Serial)))
		}
		if !found {
			a.Skip("this machine has no NVMe disk")
		}
	})
}
