package api

import (
	"bytes"
	"context"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// refuseData fails if a disk that Windows shows without a partition table does not look
// empty: if its first or last sectors cannot be read, or carry a sign of a partition table
// or of a file system that Windows does not know. Volumes of Linux pods do.
func (h *host) refuseData(ctx context.Context, disk uint32, geometry win.DiskGeometry) error {
	const head = 68 << 10 // up to the end of what signatures looks at
	sector := sectorSize(geometry)
	first := make([]byte, (head+sector-1)/sector*sector)
	if err := h.m.ReadDevice(ctx, win.PhysicalDrive(disk), 0, first); err != nil {
		return winerr.Wrap("read the first sectors of", name(disk), err)
	}
	last := make([]byte, sector)
	if err := h.m.ReadDevice(ctx, win.PhysicalDrive(disk), geometry.Size/sector*sector-sector, last); err != nil {
		return winerr.Wrap("read the last sector of", name(disk), err)
	}
	found := tableSign(first[:2*sector])
	if found == "" {
		found = tableSign(last)
	}
	if found != "" {
		return winerr.New(winerr.InUse, opInitialize, name(disk),
			"its partition table is damaged: Windows sees none, but there is %s; if nothing on it is needed, clean it with diskpart", found)
	}
	for _, s := range signatures {
		if bytes.HasPrefix(first[s.offset:], s.magic) {
			return winerr.New(winerr.InUse, opInitialize, name(disk),
				"it carries %s; if nothing on it is needed, clean it with diskpart", s.what)
		}
	}
	return nil
}

// tableSign names the sign of a partition table in some sectors. Disks move between
// controllers that show sectors of 512 and of 4096 bytes, so it looks at every 512.
// https://uefi.org/specs/UEFI/2.10/05_GUID_Partition_Table_Format.html
func tableSign(sectors []byte) string {
	for ; len(sectors) >= 512; sectors = sectors[512:] {
		switch {
		case bytes.HasPrefix(sectors, []byte("EFI PART")):
			return "the header of a GPT"
		case bootSignature(sectors):
			return "a boot signature (55 AA)"
		}
	}
	return ""
}

// bootSignature reports whether a sector ends as a master boot record or the boot sector
// of a file system does.
func bootSignature(sector []byte) bool { return sector[510] == 0x55 && sector[511] == 0xaa }

// signatures are the marks of what other systems write to a disk without partitioning it.
var signatures = []struct {
	offset int
	magic  []byte
	what   string
}{
	{0, []byte("XFSB"), "an XFS file system"},
	{0, []byte("LUKS\xba\xbe"), "a LUKS encrypted volume"},
	{512, []byte("LABELONE"), "an LVM physical volume"},
	{1080, []byte("\x53\xef"), "an ext2, ext3 or ext4 file system"},
	{64<<10 + 64, []byte("_BHRfS_M"), "a Btrfs file system"},
}

// warnOfOldVolume logs when a new partition begins where an old file system began: a disk
// that was used before, and wiped no further than its partition table. Windows mounts that
// file system again. We do not wipe it, because should the disk ever have been blank by
// mistake only, this brings the data back.
func (h *host) warnOfOldVolume(ctx context.Context, disk uint32, geometry win.DiskGeometry, p win.Partition) {
	sector := make([]byte, sectorSize(geometry))
	if h.m.ReadDevice(ctx, win.PhysicalDrive(disk), p.Offset, sector) != nil || !bootSignature(sector) {
		return
	}
	klog.FromContext(ctx).Info("The new partition begins with the boot sector of an old file system, which Windows may mount again",
		"disk", disk, "partition", p.ID, "fileSystem", string(bytes.TrimRight(sector[3:11], " \x00")))
}

// sectorSize is the unit of reading, which no sane disk leaves out.
func sectorSize(geometry win.DiskGeometry) int64 { return max(512, int64(geometry.BytesPerSector)) }
