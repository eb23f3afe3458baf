package signature_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/signature"
)

var cases = []struct {
	name   string
	offset int // from the end if negative
	magic  string
	want   string
}{
	{"nothing", 0, "", ""},
	{"random bytes", 0, "a raw database of ours", ""},
	{"NTFS", 3, "NTFS    ", "NTFS"},
	{"ReFS", 3, "ReFS\x00\x00\x00\x00", "ReFS"},
	{"BitLocker", 3, "-FVE-FS-", "BitLocker"},
	{"exFAT", 3, "EXFAT   ", "exFAT"},
	{"FAT12", 54, "FAT12   ", "FAT"},
	{"FAT16", 54, "FAT16   ", "FAT"},
	{"FAT32", 82, "FAT32   ", "FAT32"},
	{"LUKS", 0, "LUKS\xba\xbe", "LUKS"},
	{"XFS", 0, "XFSB", "XFS"},
	{"SquashFS", 0, "hsqs", "SquashFS"},
	{"BlueStore", 0, "bluestore block device\n", "Ceph BlueStore"},
	{"RAID 1.1", 0, "\xfc\x4e\x2b\xa9", "Linux RAID"},
	{"RAID 1.2", 4096, "\xfc\x4e\x2b\xa9", "Linux RAID"},
	{"RAID 1.0", -8192, "\xfc\x4e\x2b\xa9", "Linux RAID"},
	{"RAID 1.0, odd size", -10752, "\xfc\x4e\x2b\xa9", "Linux RAID"},
	{"RAID 0.90", -128 << 10, "\xfc\x4e\x2b\xa9", "Linux RAID"},
	{"APFS", 32, "NXSB", "APFS"},
	{"LVM, sector 0", 0, "LABELONE", "LVM"},
	{"LVM, sector 1", 512, "LABELONE", "LVM"},
	{"LVM, sector 2", 1024, "LABELONE", "LVM"},
	{"LVM, sector 3", 1536, "LABELONE", "LVM"},
	{"GPT", 512, "EFI PART", "a GPT partition table"},
	{"GPT, large sectors", 4096, "EFI PART", "a GPT partition table"},
	{"second GPT", -512, "EFI PART", "a GPT partition table"},
	{"second GPT, large sectors", -4096, "EFI PART", "a GPT partition table"},
	{"HFS+", 1024, "H+\x00\x04", "HFS+"},
	{"HFSX", 1024, "HX\x00\x05", "HFSX"},
	{"F2FS", 1024, "\x10\x20\xf5\xf2", "F2FS"},
	{"ext4", 1080, "\x53\xef", "ext2, ext3 or ext4"},
	{"bcache", 4120, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", "bcache"},
	{"swap", 4086, "SWAPSPACE2", "Linux swap"},
	{"swap, large pages", 65526, "SWAPSPACE2", "Linux swap"},
	{"JFS", 32768, "JFS1", "JFS"},
	{"ISO 9660", 32769, "CD001", "ISO 9660"},
	{"ReiserFS", 65588, "ReIsEr2Fs", "ReiserFS"},
	{"Btrfs", 65600, "_BHRfS_M", "Btrfs"},
	{"ZFS", 128 << 10, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS"},
	{"ZFS, other order, another slot", 250 << 10, "\x00\x00\x00\x00\x00\xba\xb1\x0c", "ZFS"},
	{"ZFS, last label", -1024, "\x0c\xb1\xba\x00\x00\x00\x00\x00", "ZFS"},
	{"second NTFS boot sector", -512 + 3, "NTFS    ", "NTFS"},
	{"a boot sector", 510, "\x55\xaa", "a boot sector or partition table"},
}

func TestSignatures(t *testing.T) {
	for _, c := range cases {
		find, b, at := signature.InHead, make([]byte, signature.HeadLength), c.offset
		if at < 0 {
			find, b = signature.InTail, make([]byte, signature.TailLength)
			at += len(b)
		}
		copy(b[at:], c.magic)
		if got := find(b); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got, want := signature.Blank(b), c.magic == ""; got != want {
			t.Errorf("%s: blank = %v", c.name, got)
		}
	}
}

// TestShort: less may be given, down to nothing.
func TestShort(t *testing.T) {
	b := make([]byte, signature.HeadLength)
	for length := 0; length <= len(b); length += 509 {
		if got := signature.InHead(b[:length]) + signature.InTail(b[:length]); got != "" {
			t.Errorf("%d zeros look like %s", length, got)
		}
	}
	copy(b, "XFSB")
	if got := signature.InHead(b[:4]); got != "XFS" {
		t.Errorf("four bytes are enough for XFS; got %q", got)
	}
	if got := signature.InHead(b[:3]); got != "" {
		t.Errorf("three bytes look like %s", got)
	}
}

// FuzzSignatures: whatever is on a disk, looking at it ends well, and a blank one has no sign
// of anything.
func FuzzSignatures(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(make([]byte, 4096))
	f.Add([]byte("\xeb\x52\x90NTFS    "))
	f.Fuzz(func(t *testing.T, b []byte) {
		head, tail := signature.InHead(b), signature.InTail(b)
		if signature.Blank(b) && head+tail != "" {
			t.Errorf("%x is blank, and has signs of %q and %q", b, head, tail)
		}
	})
}
