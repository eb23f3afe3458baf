package windows_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/disk"
)

func TestNewVolume(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	var id win.VolumeID
	// How soon does the volume appear, and is it named after its partition? Expected: within 300 ms, yes. If not: all
	// volumes are searched by their extents for 30 s; then an error says to call again.
	g.ask("Q-volume-arrival", func(a *answer) {
		began := g.machine.Now()
		_, err := g.disks.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: d.Number()})
		a.must(err)
		a.measured("PartitionDisk took", g.machine.Now().Sub(began))
		found, _, err := g.awaitVolume(ctx, d.Number())
		a.must(err)
		p, err := g.dataPartition(ctx, d.Number())
		a.must(err)
		a.fact("named after its partition", found == win.VolumeID(`\\?\Volume{`+p.ID.String()+`}\`))
		id = found
	})
	if id == "" {
		id, _, _ = g.awaitVolume(ctx, d.Number()) // the other questions say that it is not there
	}
	// How many volumes does Windows list for the partitions of a disk? Expected: none for the reserved one; data in
	// partition 2.
	g.ask("Q-volumes-listed", func(a *answer) {
		ids, err := g.settledVolumesOn(ctx, d.Number())
		a.must(err)
		a.fact("volumes", len(ids))
		layout, err := g.machine.DriveLayout(ctx, device(d))
		a.must(err)
		for _, p := range layout.Partitions {
			a.fact(fmt.Sprintf("partition %d", p.Number), partitionType(p))
		}
	})
	// What does a new volume return before it has a file system? Expected: 1005, with 21 in passing. If not: only 1005
	// and the name RAW mean "not formatted"; anything else is an error and nothing is formatted.
	g.ask("Q-unformatted", func(a *answer) {
		info, err := g.machine.FileSystem(ctx, id)
		if err == nil {
			a.fact("a file system named", info.Name)
			return
		}
		a.fact("GetVolumeInformation", err)
		_, err = g.machine.VolumeSpace(ctx, id)
		a.fact("GetDiskFreeSpaceEx", err)
		_, err = g.machine.NTFSVolumeData(ctx, id)
		a.fact("FSCTL_GET_NTFS_VOLUME_DATA", err)
	})
	// How long until the storage service knows a volume made by control codes? Expected: less than 1 s. If not: its
	// cache is refreshed for 10 s, then Win32_Volume formats.
	g.ask("Q-storage-cache", func(a *answer) {
		var seen []string
		took, err := g.await(ctx, func() error {
			err := g.machine.Format(ctx, id, win.FormatOptions{})
			if word := text(err); len(seen) == 0 || seen[len(seen)-1] != word {
				seen = append(seen, word)
			}
			return err
		})
		a.measured("answers without a refreshed cache", strings.Join(seen, ", then "))
		a.measured("formatted after", took)
		a.fact("knows the volume and formats it", err)
	})
	// Without Force, is a volume with a file system refused that no program has open? Expected: unknown; the lock between
	// processes and the look before each format do not rely on it.
	//
	// Which codes do MSFT_Volume.Format and Win32_Volume.Format return, as exception or as result? If not: both are
	// read; an unknown code is an error with its number.
	g.ask("Q-format-codes", func(a *answer) {
		a.fact("MSFT_Volume, again", g.machine.Format(ctx, id, win.FormatOptions{}))
		a.fact("Win32_Volume, again", g.machine.FormatLegacy(ctx, id, win.FormatOptions{}))
		a.fact("MSFT_Volume, no such volume", g.machine.Format(ctx, missingVolume, win.FormatOptions{}))
		a.fact("Win32_Volume, no such volume", g.machine.FormatLegacy(ctx, missingVolume, win.FormatOptions{}))
	})
	// -format-root-access=users-modify and -format-label=x: icacls and Get-Volume of the new volume show both; a pod
	// that runs as ContainerUser creates a file in the root. SetVolumeLabel takes a path by volume id, and listing a
	// new root returns 2, 18 or System Volume Information. csi-proxyctl node shows root access users-modify for it,
	// and default for a volume formatted without the flag.
	g.ask("Q-root-access", func(a *answer) {
		entries, err := g.machine.RootEntries(ctx, id)
		a.fact("listing a new root", err)
		for _, entry := range entries {
			a.fact("entry", entry.Name)
		}
		before, err := g.machine.RootSecurity(ctx, id)
		a.must(err)
		a.measured("access list of a new root", before)
		a.fact("set an access list", g.machine.SetRootSecurity(ctx, id, sddl.UsersModify))
		after, err := g.machine.RootSecurity(ctx, id)
		a.must(err)
		a.measured("access list read back", after)
		a.fact("set a label", g.machine.SetVolumeLabel(ctx, id, "x"))
		info, err := g.machine.FileSystem(ctx, id)
		a.must(err)
		a.fact("label read back", info.Label)
		a.fact("file system", info.Name)
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

func TestClusters(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	// Does MSFT_Volume.Format without Force format a volume that has no file system, and which code does it return for
	// one that has? Expected: yes; 43002 or another one. If not: Force stays, and only our own looks protect data.
	g.ask("Q-format-force", func(a *answer) {
		id := g.newVolume(a.T, d)
		a.must(g.machine.RefreshStorageCache(ctx))
		a.must(g.allowVolume(ctx, g.machine, id))
		a.fact("RAW", g.formatUnforced(ctx, id))
		a.fact("NTFS", g.formatUnforced(ctx, id))
	})
	// -format-allocation-unit-size with 512, 65536 and 2097152, by both WMI methods, and which code a wrong size gets.
	g.ask("Q-cluster-sizes", func(a *answer) {
		id := g.newFormatted(a.T, d)
		for _, size := range []uint32{512, 65536, 2 * mib, 3000} {
			err := g.machine.Format(ctx, id, win.FormatOptions{ClusterSize: size, Force: true})
			a.fact(fmt.Sprintf("MSFT_Volume, %d", size), g.clusters(a, id, err))
			err = g.machine.FormatLegacy(ctx, id, win.FormatOptions{ClusterSize: size})
			a.fact(fmt.Sprintf("Win32_Volume, %d", size), g.clusters(a, id, err))
		}
	})
}

func TestHealth(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	// Which statuses has MSFT_Volume, and what do they become when FSCTL_MARK_VOLUME_DIRTY is sent, which is what fsutil
	// dirty set does? Expected: 0 and [2], then 1 and [0xd00f] as soon as the bit is set. If not: csi-proxyctl node warns
	// of healthy volumes, or is silent about damaged ones.
	g.ask("Q-volume-health", func(a *answer) {
		id := g.newFormatted(a.T, d)
		look := func(when string) {
			dirty, err := g.machine.VolumeDirty(ctx, id)
			a.fact(when+": FSCTL_IS_VOLUME_DIRTY", err)
			a.fact(when+": dirty", dirty)
			health, err := g.machine.VolumeHealth(ctx, id)
			a.must(err)
			a.fact(when+": HealthStatus", uint16(health[id].Status))
			a.fact(when+": OperationalStatus", fmt.Sprintf("%#x", health[id].Operational))
			a.fact(when+": volumes with this UniqueId", len(health))
		}
		a.must(g.machine.RefreshStorageCache(ctx))
		look("before")
		a.fact("FSCTL_MARK_VOLUME_DIRTY", g.control(ctx, id, markVolumeDirty)[0])
		look("after")
		a.must(g.machine.RefreshStorageCache(ctx))
		look("with a refreshed cache")
		_, err := g.machine.VolumeDirty(ctx, missingVolume)
		a.fact("FSCTL_IS_VOLUME_DIRTY, no such volume", err)
	})
	// Does FSCTL_LOCK_VOLUME fail while a file is open, and does it flush what is cached before it fails? Expected: 5,
	// then no error; a flush after it takes less than the lock. If not: a lock does not show that a volume is in use.
	g.ask("Q-lock-in-use", func(a *answer) {
		id := g.newFormatted(a.T, d)
		path := string(id) + "open"
		if err := g.writeFile(path, strings.Repeat("x", 64*mib)); err != nil {
			a.Skip("volumes have no files here: ", err)
		}
		release, err := g.hold(path)
		a.must(err)
		defer release()
		began := g.machine.Now()
		a.fact("lock while a file is open", g.control(ctx, id, lockVolume)[0])
		a.measured("that took", g.machine.Now().Sub(began))
		began = g.machine.Now()
		a.fact("flush after it", g.machine.FlushVolume(ctx, id))
		a.measured("that took", g.machine.Now().Sub(began))
		release()
		for i, err := range g.control(ctx, id, lockVolume, unlockVolume) {
			a.fact([]string{"lock", "unlock"}[i], err)
		}
	})
	// Does MSFT_PhysicalDisk have the number of each disk as DeviceId, and OperationalStatus as an array? Expected: yes.
	// If not: the health of disks is unknown.
	g.ask("Q-disk-health", func(a *answer) {
		health, err := g.machine.DiskHealth(ctx)
		a.must(err)
		of, known := health[d.Number()]
		a.fact("knows the disk", known)
		a.fact("HealthStatus", uint16(of.Status))
		a.fact("OperationalStatus", fmt.Sprint(of.Operational))
	})
	// Can this edition format with ReFS, with which clusters, and which code says no? Expected: 4096 and 65536, else
	// 43001 or 43000. If not: FormatVolume fails with the number.
	g.ask("Q-refs", func(a *answer) {
		id := g.newFormatted(a.T, d)
		for _, size := range []uint32{0, 4096, 65536, 8192} {
			err := g.machine.Format(ctx, id, win.FormatOptions{FileSystem: "ReFS", ClusterSize: size, Force: true})
			if err == nil {
				var data win.NTFSVolumeData
				data, err = g.machine.ReFSVolumeData(ctx, id)
				a.fact(fmt.Sprintf("clusters after %d", size), data.BytesPerCluster)
			}
			a.fact(fmt.Sprintf("MSFT_Volume, ReFS, %d", size), err)
		}
		_, err := g.machine.VolumeDirty(ctx, id)
		a.fact("FSCTL_IS_VOLUME_DIRTY of ReFS", err)
		a.must(g.machine.Format(ctx, id, win.FormatOptions{Force: true}))
	})
}

// clusters is the size of clusters after a format, or why it failed.
func (g *group) clusters(a *answer, id win.VolumeID, formatted error) string {
	if formatted != nil {
		return text(formatted)
	}
	ntfs, err := g.machine.NTFSVolumeData(a.Context(), id)
	a.must(err)
	return fmt.Sprintf("clusters of %d", ntfs.BytesPerCluster)
}

func TestOffline(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	both := win.DiskAttributes{Offline: true, ReadOnly: true}
	// Can an offline disk and its layout be read? Expected: yes. If not: PartitionDisk brings a disk online first;
	// only GetDiskStats must work offline.
	g.ask("Q-offline-read", func(a *answer) {
		a.must(g.machine.SetDiskAttributes(ctx, device(d), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}))
		_, err := g.machine.DiskGeometry(ctx, device(d))
		a.fact("geometry", err)
		layout, err := g.machine.DriveLayout(ctx, device(d))
		a.fact("layout", err)
		a.fact("style", layout.Style)
		_, err = g.machine.ReadDevice(ctx, device(d), 0, 4096)
		a.fact("first sectors", err)
		_, err = g.machine.DeviceDescriptor(ctx, device(d))
		a.fact("descriptor", err)
		_, err = g.machine.FileSystem(ctx, id)
		a.fact("file system of its volume", err)
		a.must(g.makeWritable(a, d))
		_, took, err := g.awaitVolume(ctx, d.Number())
		a.must(err)
		a.measured("its volume came back after", took)
	})
	// Does GetVolumeInformation report FILE_READ_ONLY_VOLUME for NTFS on a read-only disk? Expected: yes. If not:
	// mounting it leaves no log line; csi-proxyctl node still warns.
	g.ask("Q-readonly-flag", func(a *answer) {
		a.must(g.machine.SetDiskAttributes(ctx, device(d), both, both))
		a.must(g.machine.SetDiskAttributes(ctx, device(d), win.DiskAttributes{}, win.DiskAttributes{Offline: true}))
		a.must(g.awaitFileSystem(a, d, id))
		info, err := g.machine.FileSystem(ctx, id)
		a.must(err)
		a.fact("FILE_READ_ONLY_VOLUME on a read-only disk", info.ReadOnly)
		a.fact("write cached data", g.machine.FlushVolume(ctx, id))
		a.must(g.machine.RefreshStorageCache(ctx))
		a.fact("format it", g.machine.Format(ctx, id, win.FormatOptions{}))
		a.must(g.makeWritable(a, d))
	})
	// Does a disk with data that another node used arrive offline and read-only, and does one request clear both? If
	// not: the disk comes online read-only, and the log says so; csi-proxyctl disk writable N.
	g.ask("Q-arrival-data", func(a *answer) {
		a.must(g.machine.SetDiskAttributes(ctx, device(d), both, both))
		a.fact("one request clears both", g.makeWritable(a, d))
		a.must(g.machine.Sleep(ctx, 2*time.Second))
		g.factState(a, "after 2 s", d)
		a.must(g.awaitFileSystem(a, d, id))
		info, err := g.machine.FileSystem(ctx, id)
		a.must(err)
		a.fact("its volume is read-only", info.ReadOnly)
		err = d.Detach(ctx)
		if cannot, ok := errors.AsType[cannotError](err); ok {
			a.Logf("not attached read-only: %v", cannot)
			return
		}
		a.must(err)
		err = d.Attach(ctx, true)
		if cannot, ok := errors.AsType[cannotError](err); ok {
			a.Logf("not attached read-only: %v", cannot)
			return
		}
		a.must(err)
		g.factState(a, "attached read-only by its backend", d)
		a.fact("clear that", g.makeWritable(a, d))
		g.factState(a, "then it is", d)
	})
}

// awaitFileSystem waits until the volume of a disk can be read.
func (g *group) awaitFileSystem(a *answer, d scratchDisk, id win.VolumeID) error {
	var seen []string
	took, err := g.await(a.Context(), func() error {
		_, err := g.machine.FileSystem(a.Context(), id)
		if word := text(err); len(seen) == 0 || seen[len(seen)-1] != word {
			seen = append(seen, word)
		}
		return err
	})
	a.measured(fmt.Sprintf("disk %d: GetVolumeInformation", d.Number()), strings.Join(seen, ", then ")+" after "+text(took))
	return err
}

func TestReturn(t *testing.T) {
	g := newGroup(t)
	g.needVirtual()
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	// Can the volume of a disk with data take longer than 30 s to appear? Expected: no. If not: PartitionDisk and
	// ListVolumesOnDisk fail, and a retry succeeds.
	g.ask("Q-late-volume", func(a *answer) {
		a.must(d.Detach(ctx))
		a.must(d.Attach(ctx, false))
		g.factState(a, "arrives", d)
		a.must(g.makeWritable(a, d))
		again, took, err := g.awaitVolume(ctx, d.Number())
		a.must(err)
		a.measured("its volume appears after", took)
		a.fact("it has the same name", again == id)
		a.must(g.awaitFileSystem(a, d, again))
	})
	// Is a populated disk ever shown as RAW for a moment? If not: it must be RAW twice, 500 ms apart, with readable
	// sectors at both ends that carry no sign of a table.
	g.ask("Q-raw-moment", func(a *answer) {
		const rounds, looks = 5, 20
		raw, failed := 0, map[string]int{}
		for range rounds {
			a.must(d.Detach(ctx))
			a.must(d.Attach(ctx, false))
			for range looks {
				layout, err := g.machine.DriveLayout(ctx, device(d))
				switch {
				case err != nil:
					failed[text(err)]++
				case layout.Style == win.StyleRaw:
					raw++
				}
				a.must(g.machine.Sleep(ctx, 10*time.Millisecond))
			}
		}
		a.fact("shown as RAW", raw > 0)
		a.measured("of 100 looks RAW", raw)
		a.measured("of 100 looks failed", fmt.Sprint(failed))
	})
}

func TestClone(t *testing.T) {
	g := newGroup(t)
	g.needVirtual()
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	// Does a clone beside its original stay offline because of its ids until it is writable, and which of the two gets
	// new ids? If not: it does not come online, and the error names the original.
	g.ask("Q-collision", func(a *answer) {
		original, err := g.machine.DriveLayout(ctx, device(d))
		a.must(err)
		clone, err := d.Clone(ctx)
		a.must(err)
		g.keepDisk(a.T, clone)
		g.factState(a, "the copy arrives", clone)
		layout, err := g.machine.DriveLayout(ctx, device(clone))
		a.fact("its table can be read", err)
		a.fact("with the same disk id", layout.DiskID == original.DiskID)
		alone := win.DiskAttributes{Offline: true}
		a.fact("take only its offline flag away", g.machine.SetDiskAttributes(ctx, device(clone), win.DiskAttributes{}, alone))
		a.must(g.machine.Sleep(ctx, 2*time.Second))
		g.factState(a, "then it is", clone)
		a.fact("take both flags away", g.makeWritable(a, clone))
		a.must(g.machine.Sleep(ctx, 2*time.Second))
		g.factState(a, "after that it is", clone)
		layout, err = g.machine.DriveLayout(ctx, device(clone))
		a.must(err)
		a.fact("the copy has a new disk id", layout.DiskID != original.DiskID)
		mine, err := g.machine.DriveLayout(ctx, device(d))
		a.must(err)
		a.fact("the original has a new disk id", mine.DiskID != original.DiskID)
		p, err := g.dataPartition(ctx, clone.Number())
		a.must(err)
		a.fact("the partition of the copy has a new id", win.VolumeID(`\\?\Volume{`+p.ID.String()+`}\`) != id)
		volumes, err := g.settledVolumesOn(ctx, clone.Number())
		a.must(err)
		a.fact("volumes of the copy", len(volumes))
	})
}

func TestGrowth(t *testing.T) {
	g := newGroup(t)
	g.needVirtual()
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	size := d.Size()
	// When do size and usable range follow a disk that has grown? Expected: at IOCTL_DISK_UPDATE_DRIVE_SIZE and
	// IOCTL_DISK_UPDATE_PROPERTIES. If not: they are sent again for 10 s; then MSFT_Partition.Resize is called once;
	// if that fails the error names both sizes and a retry continues.
	g.ask("Q-grow-range", func(a *answer) {
		how, err := d.Grow(ctx, 2*size)
		a.must(err)
		a.fact("the disk grows", how)
		a.must(g.makeWritable(a, d))
		when := map[string]string{"size": "not within these", "usable range": "not within these"}
		look := func(step string) {
			geometry, err := g.machine.DiskGeometry(ctx, device(d))
			a.must(err)
			layout, err := g.machine.DriveLayout(ctx, device(d))
			a.must(err)
			if geometry.Size == 2*size && when["size"] == "not within these" {
				when["size"] = step
			}
			if layout.UsableEnd() > size && when["usable range"] == "not within these" {
				when["usable range"] = step
			}
		}
		look("at once")
		a.must(g.machine.UpdateDriveSize(ctx, device(d)))
		look("after IOCTL_DISK_UPDATE_DRIVE_SIZE")
		a.must(g.machine.UpdateDisk(ctx, device(d)))
		look("after IOCTL_DISK_UPDATE_PROPERTIES")
		a.must(g.machine.Sleep(ctx, 5*time.Second))
		look("5 s later")
		a.fact("the size follows", when["size"])
		a.fact("the usable range follows", when["usable range"])
	})
	// Is FSCTL_EXTEND_VOLUME refused (87) right after the partition has grown, and how many sectors does NTFS add?
	// Expected: at most for an instant; all, or one less. If not: repeated for 10 s; compared with a tolerance of a
	// cluster; the next call extends a file system that lags.
	g.ask("Q-extend", func(a *answer) {
		_, took, err := g.awaitVolume(ctx, d.Number())
		a.must(err)
		a.measured("its volume was there after", took)
		p, err := g.dataPartition(ctx, d.Number())
		a.must(err)
		before, err := g.machine.NTFSVolumeData(ctx, id)
		a.must(err)
		const more = 256 * mib
		a.must(g.machine.GrowPartition(ctx, device(d), p.Number, more))
		sectors := (p.Length + more) / int64(before.BytesPerSector)
		var seen []string
		took, err = g.await(ctx, func() error {
			err := g.machine.ExtendVolume(ctx, id, sectors)
			if word := text(err); len(seen) == 0 || seen[len(seen)-1] != word {
				seen = append(seen, word)
			}
			return err
		})
		a.must(err)
		a.measured("FSCTL_EXTEND_VOLUME", strings.Join(seen, ", then ")+" after "+text(took))
		after, err := g.machine.NTFSVolumeData(ctx, id)
		a.must(err)
		a.fact("sectors that NTFS leaves", sectors-after.Sectors)
		a.fact("sectors that NTFS left before", p.Length/int64(before.BytesPerSector)-before.Sectors)
	})
}

func TestResize(t *testing.T) {
	g := newGroup(t)
	g.needVirtual()
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	// Does MSFT_Partition.Resize find the partition by Guid, extend the table of a disk that has grown, and extend
	// NTFS? Expected: yes, as Resize-Partition does. If not: unavailable with its code.
	g.ask("Q-partition-resize", func(a *answer) {
		size := d.Size()
		_, err := d.Grow(ctx, 2*size)
		a.must(err)
		a.must(g.makeWritable(a, d))
		a.must(g.machine.UpdateDriveSize(ctx, device(d)))
		_, _, err = g.awaitVolume(ctx, d.Number())
		a.must(err)
		p, err := g.dataPartition(ctx, d.Number())
		a.must(err)
		began := g.machine.Now()
		a.fact("MSFT_Partition.Resize", g.machine.ResizePartition(ctx, d.Number(), p.ID, p.Length+256*mib))
		a.measured("took", g.machine.Now().Sub(began))
		grown, err := g.dataPartition(ctx, d.Number())
		a.must(err)
		a.fact("the partition has grown", grown.Length > p.Length)
		ntfs, err := g.machine.NTFSVolumeData(ctx, id)
		a.must(err)
		a.fact("NTFS has grown", ntfs.Sectors*int64(ntfs.BytesPerSector) > p.Length)
	})
}

// TestReadOnlyOnline makes a disk read-only while its volume is mounted, as a stage of a read-only volume does.
func TestReadOnlyOnline(t *testing.T) {
	g := newGroup(t)
	if g.noLinks != "" {
		g.Skip(g.noLinks)
	}
	ctx, d := g.Context(), g.scratch(g.T, 512)
	id := g.newFormatted(g.T, d)
	dir, err := g.machine.OpenDirectory(ctx, win.Following(g.dir))
	g.must(err)
	g.Cleanup(dir.Close)
	g.must(dir.CreateDirectory(ctx, "mount"))
	g.must(dir.SetMountPoint(ctx, "mount", id))
	// Does READ_ONLY, set on an online disk whose volume is mounted, hold for that volume at once? Expected: no, only
	// after the volume was dismounted. If not: nothing has to go offline.
	g.ask("Q-readonly-online", func(a *answer) {
		a.must(g.awaitFileSystem(a, d, id))
		a.must(g.writeFile(g.dir+`\mount\before`, "data"))
		readOnly := win.DiskAttributes{ReadOnly: true}
		a.fact("set READ_ONLY", g.machine.SetDiskAttributes(ctx, device(d), readOnly, readOnly))
		info, err := g.machine.FileSystem(ctx, id)
		a.must(err)
		a.fact("FILE_READ_ONLY_VOLUME at once", info.ReadOnly)
		a.fact("write a file", g.writeFile(g.dir+`\mount\after`, "data") == nil)
		a.fact("write cached data", g.machine.FlushVolume(ctx, id))
		offline := win.DiskAttributes{Offline: true}
		a.must(g.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		a.must(g.machine.SetDiskAttributes(ctx, device(d), win.DiskAttributes{}, offline))
		_, _, err = g.awaitVolume(ctx, d.Number())
		a.must(err)
		a.must(g.awaitFileSystem(a, d, id))
		info, err = g.machine.FileSystem(ctx, id)
		a.must(err)
		a.fact("FILE_READ_ONLY_VOLUME after it was offline", info.ReadOnly)
		a.fact("write a file then", g.writeFile(g.dir+`\mount\later`, "data") == nil)
		_, err = g.readFile(g.dir + `\mount\after`)
		a.fact("what was written before that is there", err == nil)
		a.must(g.makeWritable(a, d))
	})
}

// TestOnlineReadOnly brings a disk with a file system online read-only.
func TestOnlineReadOnly(t *testing.T) {
	g := newGroup(t)
	ctx, d := g.Context(), g.scratch(g.T, 512)
	step := int64(mib)
	if testing.Short() { // under Wine each mebibyte takes long
		g.Log("one mebibyte in 16 is compared")
		step *= 16
	}
	// Does Windows write to a disk that became read-only while it was offline? Expected: no byte changes while its
	// volume appears, mounts and is flushed. If not: nodes that share a disk read-only see each other's writes.
	g.ask("Q-online-read-only", func(a *answer) {
		id := g.newFormatted(a.T, d)
		offline := win.DiskAttributes{Offline: true}
		a.must(g.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		before := g.checksum(a, d, step)
		_, err := g.disks.(*disk.Disk).OnlineDiskReadOnly(ctx, &disk.OnlineDiskReadOnlyRequest{DiskNumber: d.Number()})
		a.must(err)
		g.factState(a, "the disk is", d)
		a.must(g.awaitFileSystem(a, d, id))
		info, err := g.machine.FileSystem(ctx, id)
		a.must(err)
		a.fact("FILE_READ_ONLY_VOLUME", info.ReadOnly)
		a.fact("write cached data", g.machine.FlushVolume(ctx, id))
		a.must(g.machine.SetDiskAttributes(ctx, device(d), offline, offline))
		a.fact("a byte of the disk has changed", g.checksum(a, d, step) != before)
		a.must(g.makeWritable(a, d))
	})
}

// checksum is that of a mebibyte of a disk in each step.
func (g *group) checksum(a *answer, d scratchDisk, step int64) uint32 {
	a.Helper()
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	for offset := int64(0); offset < d.Size(); offset += step {
		part, err := g.machine.ReadDevice(g.Context(), device(d), offset, int(min(mib, d.Size()-offset)))
		a.must(err)
		h.Write(part)
	}
	return h.Sum32()
}

// TestReusedLUN attaches another disk where one was that is offline and read-only.
func TestReusedLUN(t *testing.T) {
	g := newGroup(t)
	g.needVirtual()
	ctx := g.Context()
	for _, question := range []struct {
		id    string
		flags win.DiskAttributes
	}{
		// Does the persistent offline flag apply to another disk attached later at the same LUN? If so: PartitionDisk takes
		// every disk online, and repeats it until that holds.
		{"Q-offline-lun", win.DiskAttributes{Offline: true}},
		// Does the persistent read-only flag? If so: PartitionDisk clears it for an empty disk; another comes online
		// read-only, and the log says so.
		{"Q-readonly-lun", win.DiskAttributes{ReadOnly: true}},
	} {
		g.ask(question.id, func(a *answer) {
			first := g.scratch(a.T, 512)
			before, _ := g.machine.SCSIAddress(ctx, device(first))
			a.must(g.machine.SetDiskAttributes(ctx, device(first), question.flags, question.flags))
			a.must(first.Detach(ctx))
			second := g.scratch(a.T, 512)
			after, err := g.machine.SCSIAddress(ctx, device(second))
			a.measured("the second has the address of the first", err == nil && before == after)
			g.factState(a, "the second arrives", second)
		})
	}
}
