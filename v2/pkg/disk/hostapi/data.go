package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/signature"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// ends is how much at either end of a disk must be zero before a partition table is written. All
// tables begin there, and so does most data on disks without one.
const ends = 8 << 10

// refuseData fails if a disk that Windows shows without a partition table is not empty: if its
// ends cannot be read or are not zero, or if there is a signature of a file system, RAID or LVM
// further in, where Linux puts some.
func (h *host) refuseData(ctx context.Context, disk target, geometry win.DiskGeometry) error {
	const advice = "if nothing on it is needed, clean it with diskpart"
	head, err := h.m.ReadDevice(ctx, disk.device, 0, signature.HeadLength)
	if err != nil {
		return winerr.Wrap("read the first sectors of", disk.name(), err)
	}
	sector := sectorSize(geometry)
	tail, err := h.m.ReadDevice(ctx, disk.device, geometry.Size/sector*sector-signature.TailLength, signature.TailLength)
	if err != nil {
		return winerr.Wrap("read the last sectors of", disk.name(), err)
	}
	first, last := head[:ends], tail[len(tail)-ends:]
	if found := cmp.Or(tableSign(first[:min(2*sector, ends)]), tableSign(last)); found != "" {
		return winerr.New(winerr.InUse, opInitialize, disk.name(),
			"its partition table is damaged: Windows finds no table, but the disk has %s; "+advice, found)
	}
	if found := cmp.Or(signature.InHead(head), signature.InTail(tail)); found != "" {
		return winerr.New(winerr.InUse, opInitialize, disk.name(), "it is not blank: there are traces of %s; "+advice, found)
	}
	if !signature.Blank(first) || !signature.Blank(last) {
		return winerr.New(winerr.InUse, opInitialize, disk.name(),
			"it is not blank: its first or last %d bytes are not all zero; "+advice, ends)
	}
	return nil
}

// entries looks for partitions in the sectors of a GPT. It describes the first one that is not
// reserved.
// https://uefi.org/specs/UEFI/2.10/05_GUID_Partition_Table_Format.html
func (h *host) entries(ctx context.Context, disk target, geometry win.DiskGeometry) (found string, err error) {
	const (
		damaged = "no valid header of it on the disk"
		most    = 1 << 20 // 16 KiB are usual
	)
	sector := sectorSize(geometry)
	header, err := h.m.ReadDevice(ctx, disk.device, sector, int(sector))
	if err != nil {
		return "", err
	}
	if !bytes.HasPrefix(header, []byte(gptMagic)) {
		return damaged, nil
	}
	at := binary.LittleEndian.Uint64(header[72:])
	count, size := uint64(binary.LittleEndian.Uint32(header[80:])), uint64(binary.LittleEndian.Uint32(header[84:]))
	if at < 2 || at > uint64(most/sector) || size < 128 || count == 0 || count*size > most {
		return damaged, nil
	}
	array, err := h.m.ReadDevice(ctx, disk.device, int64(at)*sector, int((int64(count*size)+sector-1)/sector*sector))
	if err != nil {
		return "", err
	}
	reserved := inMemory(win.PartitionMSR)
	for i := range count {
		entry := array[i*size : (i+1)*size]
		if !bytes.HasPrefix(entry, reserved) && !signature.Blank(entry) {
			return fmt.Sprintf("entry %d of it on the disk", i+1), nil
		}
	}
	return "", nil
}

// inMemory is a GUID in the order of memory and disks: its first three parts are numbers.
func inMemory(id win.GUID) []byte {
	b := bytes.Clone(id[:])
	slices.Reverse(b[0:4])
	slices.Reverse(b[4:6])
	slices.Reverse(b[6:8])
	return b
}

const gptMagic = "EFI PART"

// tableSign names the sign of a partition table in some sectors. Disks move between
// controllers that show sectors of 512 and of 4096 bytes, so it looks at every 512.
// https://uefi.org/specs/UEFI/2.10/05_GUID_Partition_Table_Format.html
func tableSign(sectors []byte) string {
	for ; len(sectors) >= 512; sectors = sectors[512:] {
		switch {
		case bytes.HasPrefix(sectors, []byte(gptMagic)):
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

// warnOfOldVolume logs when a new partition begins where an old file system began: the disk was
// used before, and only its partition table was wiped. Windows mounts that file system again. We do
// not wipe it: if the table was lost by mistake, this brings the data back.
func (h *host) warnOfOldVolume(ctx context.Context, disk target, p win.Partition) {
	sector, err := h.m.ReadDevice(ctx, disk.device, p.Offset, 4096) // of any size
	if err != nil || !bootSignature(sector) {
		return
	}
	klog.FromContext(ctx).Info("The new partition begins with the boot sector of an old file system, which Windows may mount again",
		"disk", disk.number, "partition", p.ID, "fileSystem", string(bytes.TrimRight(sector[3:11], " \x00")))
}

// sectorSize is the unit of reads. 512 is for disks that report none.
func sectorSize(geometry win.DiskGeometry) int64 { return max(512, int64(geometry.BytesPerSector)) }
