package verify

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

func askNewVolume(b *bench) {
	ctx, d := b.Context(), b.newDisk(512)
	var id win.VolumeID
	b.ask("Q-volume-arrival", func(a *Ask) {
		began := b.machine.Now()
		_, err := b.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.Number()})
		a.Must(err)
		a.Measured("PartitionDisk took", b.machine.Now().Sub(began))
		found, _, err := b.awaitVolume(ctx, d.Number())
		a.Must(err)
		p, err := b.dataPartition(ctx, d.Number())
		a.Must(err)
		a.Fact("named after its partition", found == win.VolumeID(`\\?\Volume{`+p.ID.String()+`}\`))
		id = found
	})
	if id == "" {
		id, _, _ = b.awaitVolume(ctx, d.Number()) // the other questions say that it is not there
	}
	b.ask("Q-volumes-listed", func(a *Ask) {
		ids, err := b.settledVolumesOn(ctx, d.Number())
		a.Must(err)
		a.Fact("volumes", len(ids))
		layout, err := b.machine.DriveLayout(ctx, device(d))
		a.Must(err)
		for _, p := range layout.Partitions {
			a.Fact(fmt.Sprintf("partition %d", p.Number), partitionType(p))
		}
	})
	b.ask("Q-unformatted", func(a *Ask) {
		info, err := b.machine.FileSystem(ctx, id)
		if err == nil {
			a.Fact("a file system named", info.Name)
			return
		}
		a.Fact("GetVolumeInformation", err)
		_, err = b.machine.VolumeSpace(ctx, id)
		a.Fact("GetDiskFreeSpaceEx", err)
		_, err = b.machine.NTFSVolumeData(ctx, id)
		a.Fact("FSCTL_GET_NTFS_VOLUME_DATA", err)
	})
	b.ask("Q-storage-cache", func(a *Ask) {
		var seen []string
		took, err := b.await(ctx, func() error {
			err := b.machine.Format(ctx, id, win.FormatOptions{})
			if word := text(err); len(seen) == 0 || seen[len(seen)-1] != word {
				seen = append(seen, word)
			}
			return err
		})
		a.Measured("answers without a refreshed cache", strings.Join(seen, ", then "))
		a.Measured("formatted after", took)
		a.Fact("knows the volume and formats it", err)
	})
	b.ask("Q-format-codes", func(a *Ask) {
		a.Fact("MSFT_Volume, again", b.machine.Format(ctx, id, win.FormatOptions{}))
		a.Fact("Win32_Volume, again", b.machine.FormatLegacy(ctx, id, win.FormatOptions{}))
		a.Fact("MSFT_Volume, no such volume", b.machine.Format(ctx, missingVolume, win.FormatOptions{}))
		a.Fact("Win32_Volume, no such volume", b.machine.FormatLegacy(ctx, missingVolume, win.FormatOptions{}))
	})
	b.ask("Q-root-access", func(a *Ask) {
		entries, err := b.machine.RootEntries(ctx, id)
		a.Fact("listing a new root", err)
		for _, entry := range entries {
			a.Fact("entry", entry.Name)
		}
		before, err := b.machine.RootSecurity(ctx, id)
		a.Must(err)
		a.Measured("access list of a new root", before)
		a.Fact("set an access list", b.machine.SetRootSecurity(ctx, id, sddl.UsersModify))
		after, err := b.machine.RootSecurity(ctx, id)
		a.Must(err)
		a.Measured("access list read back", after)
		a.Fact("set a label", b.machine.SetVolumeLabel(ctx, id, "x"))
		info, err := b.machine.FileSystem(ctx, id)
		a.Must(err)
		a.Fact("label read back", info.Label)
		a.Fact("file system", info.Name)
	})
}

func partitionType(p win.Partition) string {
	switch p.Type {
	case win.PartitionBasicData:
		return "basic data"
	case win.PartitionMSR:
		return "reserved"
	default:
		return "type " + p.Type.String()
	}
}

func askClusters(b *bench) {
	ctx, d := b.Context(), b.newDisk(512)
	b.ask("Q-cluster-sizes", func(a *Ask) {
		id := b.newFormatted(a.T, d)
		for _, size := range []uint32{512, 65536, 2 * mib, 3000} {
			err := b.machine.Format(ctx, id, win.FormatOptions{ClusterSize: size})
			a.Fact(fmt.Sprintf("MSFT_Volume, %d", size), b.clusters(a, id, err))
			err = b.machine.FormatLegacy(ctx, id, win.FormatOptions{ClusterSize: size})
			a.Fact(fmt.Sprintf("Win32_Volume, %d", size), b.clusters(a, id, err))
		}
	})
}

// clusters is the size of clusters after a format, or why it failed.
func (b *bench) clusters(a *Ask, id win.VolumeID, formatted error) string {
	if formatted != nil {
		return text(formatted)
	}
	ntfs, err := b.machine.NTFSVolumeData(a.Context(), id)
	a.Must(err)
	return fmt.Sprintf("clusters of %d", ntfs.BytesPerCluster)
}

func askOffline(b *bench) {
	ctx, d := b.Context(), b.newDisk(512)
	id := b.newFormatted(b.T, d)
	both := win.DiskAttributes{Offline: true, ReadOnly: true}
	b.ask("Q-offline-read", func(a *Ask) {
		a.Must(b.machine.SetDiskAttributes(ctx, device(d), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}))
		_, err := b.machine.DiskGeometry(ctx, device(d))
		a.Fact("geometry", err)
		layout, err := b.machine.DriveLayout(ctx, device(d))
		a.Fact("layout", err)
		a.Fact("style", layout.Style)
		a.Fact("first sectors", b.machine.ReadDevice(ctx, device(d), 0, make([]byte, 4096)))
		_, err = b.machine.DeviceDescriptor(ctx, device(d))
		a.Fact("descriptor", err)
		_, err = b.machine.FileSystem(ctx, id)
		a.Fact("file system of its volume", err)
		a.Must(b.makeWritable(a, d))
		_, took, err := b.awaitVolume(ctx, d.Number())
		a.Must(err)
		a.Measured("its volume came back after", took)
	})
	b.ask("Q-readonly-flag", func(a *Ask) {
		a.Must(b.machine.SetDiskAttributes(ctx, device(d), both, both))
		a.Must(b.machine.SetDiskAttributes(ctx, device(d), win.DiskAttributes{}, win.DiskAttributes{Offline: true}))
		a.Must(b.awaitFileSystem(a, d, id))
		info, err := b.machine.FileSystem(ctx, id)
		a.Must(err)
		a.Fact("FILE_READ_ONLY_VOLUME on a read-only disk", info.ReadOnly)
		a.Fact("write cached data", b.machine.FlushVolume(ctx, id))
		a.Must(b.machine.RefreshStorageCache(ctx))
		a.Fact("format it", b.machine.Format(ctx, id, win.FormatOptions{}))
		a.Must(b.makeWritable(a, d))
	})
	b.ask("Q-arrival-data", func(a *Ask) {
		a.Must(b.machine.SetDiskAttributes(ctx, device(d), both, both))
		a.Fact("one request clears both", b.makeWritable(a, d))
		a.Must(b.machine.Sleep(ctx, 2*time.Second))
		attributes, err := b.machine.DiskAttributes(ctx, device(d))
		a.Must(err)
		a.Fact("after 2 s", state(attributes))
		a.Must(b.awaitFileSystem(a, d, id))
		info, err := b.machine.FileSystem(ctx, id)
		a.Must(err)
		a.Fact("its volume is read-only", info.ReadOnly)
		err = d.Detach(ctx)
		if reason, ok := cannot(err); ok {
			a.Logf("not attached read-only: %s", reason)
			return
		}
		a.Must(err)
		err = d.Attach(ctx, true)
		if reason, ok := cannot(err); ok {
			a.Logf("not attached read-only: %s", reason)
			return
		}
		a.Must(err)
		attributes, err = b.machine.DiskAttributes(ctx, device(d))
		a.Must(err)
		a.Fact("attached read-only by its backend", state(attributes))
		a.Fact("clear that", b.makeWritable(a, d))
		attributes, err = b.machine.DiskAttributes(ctx, device(d))
		a.Must(err)
		a.Fact("then it is", state(attributes))
	})
}

// awaitFileSystem waits until the volume of a disk can be read.
func (b *bench) awaitFileSystem(a *Ask, d Disk, id win.VolumeID) error {
	var seen []string
	took, err := b.await(a.Context(), func() error {
		_, err := b.machine.FileSystem(a.Context(), id)
		if word := text(err); len(seen) == 0 || seen[len(seen)-1] != word {
			seen = append(seen, word)
		}
		return err
	})
	a.Measured(fmt.Sprintf("disk %d: GetVolumeInformation", d.Number()), strings.Join(seen, ", then ")+" after "+text(took))
	return err
}

func askReturn(b *bench) {
	b.needVirtual()
	ctx, d := b.Context(), b.newDisk(512)
	id := b.newFormatted(b.T, d)
	b.ask("Q-late-volume", func(a *Ask) {
		a.Must(d.Detach(ctx))
		a.Must(d.Attach(ctx, false))
		attributes, err := b.machine.DiskAttributes(ctx, device(d))
		a.Must(err)
		a.Fact("arrives", state(attributes))
		a.Must(b.makeWritable(a, d))
		again, took, err := b.awaitVolume(ctx, d.Number())
		a.Must(err)
		a.Measured("its volume appears after", took)
		a.Fact("it has the same name", again == id)
		a.Must(b.awaitFileSystem(a, d, again))
	})
	b.ask("Q-raw-moment", func(a *Ask) {
		const rounds, looks = 5, 20
		raw, failed := 0, map[string]int{}
		for range rounds {
			a.Must(d.Detach(ctx))
			a.Must(d.Attach(ctx, false))
			for range looks {
				layout, err := b.machine.DriveLayout(ctx, device(d))
				switch {
				case err != nil:
					failed[text(err)]++
				case layout.Style == win.StyleRaw:
					raw++
				}
				a.Must(b.machine.Sleep(ctx, 10*time.Millisecond))
			}
		}
		a.Fact("shown as RAW", raw > 0)
		a.Measured("of 100 looks RAW", raw)
		a.Measured("of 100 looks failed", fmt.Sprint(failed))
	})
}

func askClone(b *bench) {
	b.needVirtual()
	ctx, d := b.Context(), b.newDisk(512)
	id := b.newFormatted(b.T, d)
	b.ask("Q-collision", func(a *Ask) {
		original, err := b.machine.DriveLayout(ctx, device(d))
		a.Must(err)
		clone, err := d.Clone(ctx)
		a.Must(err)
		b.keepDisk(a.T, clone)
		attributes, err := b.machine.DiskAttributes(ctx, device(clone))
		a.Must(err)
		a.Fact("the copy arrives", state(attributes))
		layout, err := b.machine.DriveLayout(ctx, device(clone))
		a.Fact("its table can be read", err)
		a.Fact("with the same disk id", layout.DiskID == original.DiskID)
		alone := win.DiskAttributes{Offline: true}
		a.Fact("take only its offline flag away", b.machine.SetDiskAttributes(ctx, device(clone), win.DiskAttributes{}, alone))
		a.Must(b.machine.Sleep(ctx, 2*time.Second))
		attributes, err = b.machine.DiskAttributes(ctx, device(clone))
		a.Must(err)
		a.Fact("then it is", state(attributes))
		a.Fact("take both flags away", b.makeWritable(a, clone))
		a.Must(b.machine.Sleep(ctx, 2*time.Second))
		attributes, err = b.machine.DiskAttributes(ctx, device(clone))
		a.Must(err)
		a.Fact("after that it is", state(attributes))
		layout, err = b.machine.DriveLayout(ctx, device(clone))
		a.Must(err)
		a.Fact("the copy has a new disk id", layout.DiskID != original.DiskID)
		mine, err := b.machine.DriveLayout(ctx, device(d))
		a.Must(err)
		a.Fact("the original has a new disk id", mine.DiskID != original.DiskID)
		p, err := b.dataPartition(ctx, clone.Number())
		a.Must(err)
		a.Fact("the partition of the copy has a new id", win.VolumeID(`\\?\Volume{`+p.ID.String()+`}\`) != id)
		volumes, err := b.settledVolumesOn(ctx, clone.Number())
		a.Must(err)
		a.Fact("volumes of the copy", len(volumes))
	})
}

func askGrowth(b *bench) {
	b.needVirtual()
	ctx, d := b.Context(), b.newDisk(512)
	id := b.newFormatted(b.T, d)
	size := d.Size()
	b.ask("Q-grow-range", func(a *Ask) {
		how, err := d.Grow(ctx, 2*size)
		a.Must(err)
		a.Fact("the disk grows", how)
		a.Must(b.makeWritable(a, d))
		when := map[string]string{"size": "not within these", "usable range": "not within these"}
		look := func(step string) {
			geometry, err := b.machine.DiskGeometry(ctx, device(d))
			a.Must(err)
			layout, err := b.machine.DriveLayout(ctx, device(d))
			a.Must(err)
			if geometry.Size == 2*size && when["size"] == "not within these" {
				when["size"] = step
			}
			if layout.UsableEnd() > size && when["usable range"] == "not within these" {
				when["usable range"] = step
			}
		}
		look("at once")
		a.Must(b.machine.UpdateDriveSize(ctx, device(d)))
		look("after IOCTL_DISK_UPDATE_DRIVE_SIZE")
		a.Must(b.machine.UpdateDisk(ctx, device(d)))
		look("after IOCTL_DISK_UPDATE_PROPERTIES")
		a.Must(b.machine.Sleep(ctx, 5*time.Second))
		look("5 s later")
		a.Fact("the size follows", when["size"])
		a.Fact("the usable range follows", when["usable range"])
	})
	b.ask("Q-extend", func(a *Ask) {
		_, took, err := b.awaitVolume(ctx, d.Number())
		a.Must(err)
		a.Measured("its volume was there after", took)
		p, err := b.dataPartition(ctx, d.Number())
		a.Must(err)
		before, err := b.machine.NTFSVolumeData(ctx, id)
		a.Must(err)
		const more = 256 * mib
		a.Must(b.machine.GrowPartition(ctx, device(d), p.Number, more))
		sectors := (p.Length + more) / int64(before.BytesPerSector)
		var seen []string
		took, err = b.await(ctx, func() error {
			err := b.machine.ExtendVolume(ctx, id, sectors)
			if word := text(err); len(seen) == 0 || seen[len(seen)-1] != word {
				seen = append(seen, word)
			}
			return err
		})
		a.Must(err)
		a.Measured("FSCTL_EXTEND_VOLUME", strings.Join(seen, ", then ")+" after "+text(took))
		after, err := b.machine.NTFSVolumeData(ctx, id)
		a.Must(err)
		a.Fact("sectors that NTFS leaves", sectors-after.Sectors)
		a.Fact("sectors that NTFS left before", p.Length/int64(before.BytesPerSector)-before.Sectors)
	})
}

func askResize(b *bench) {
	b.needVirtual()
	ctx, d := b.Context(), b.newDisk(512)
	id := b.newFormatted(b.T, d)
	b.ask("Q-partition-resize", func(a *Ask) {
		size := d.Size()
		_, err := d.Grow(ctx, 2*size)
		a.Must(err)
		a.Must(b.makeWritable(a, d))
		a.Must(b.machine.UpdateDriveSize(ctx, device(d)))
		_, _, err = b.awaitVolume(ctx, d.Number())
		a.Must(err)
		p, err := b.dataPartition(ctx, d.Number())
		a.Must(err)
		began := b.machine.Now()
		a.Fact("MSFT_Partition.Resize", b.machine.ResizePartition(ctx, d.Number(), p.ID, p.Length+256*mib))
		a.Measured("took", b.machine.Now().Sub(began))
		grown, err := b.dataPartition(ctx, d.Number())
		a.Must(err)
		a.Fact("the partition has grown", grown.Length > p.Length)
		ntfs, err := b.machine.NTFSVolumeData(ctx, id)
		a.Must(err)
		a.Fact("NTFS has grown", ntfs.Sectors*int64(ntfs.BytesPerSector) > p.Length)
	})
}
