package api

// headLength is how much of a volume is read to look for signatures: as far as the last of
// them, in whole sectors of any size.
const headLength = 68 << 10

// signatures are what file systems, encrypted volumes and volume managers can be told by.
// Windows recognises the first ones unless they are damaged, and none of the others.
// https://git.kernel.org/pub/scm/utils/util-linux/util-linux.git/tree/libblkid/src/superblocks
var signatures = []struct {
	offset int
	magic  string
	what   string
}{
	{3, "NTFS    ", "NTFS"},
	{3, "ReFS\x00\x00\x00\x00", "ReFS"},
	{3, "-FVE-FS-", "BitLocker"},
	{3, "EXFAT   ", "exFAT"},
	{54, "FAT1", "FAT"},
	{82, "FAT32   ", "FAT32"},
	{0, "LUKS\xba\xbe", "LUKS"},
	{0, "XFSB", "XFS"},
	{0, "hsqs", "SquashFS"},
	{32, "NXSB", "APFS"},
	{512, "LABELONE", "LVM"},
	{512, "EFI PART", "a GPT partition table"},
	{1024, "H+\x00\x04", "HFS+"},
	{1024, "HX\x00\x05", "HFSX"},
	{1080, "\x53\xef", "ext2, ext3 or ext4"},
	{4086, "SWAPSPACE2", "Linux swap"},
	{32769, "CD001", "ISO 9660"},
	{65588, "ReIsEr", "ReiserFS"},
	{65600, "_BHRfS_M", "Btrfs"},
	{510, "\x55\xaa", "a boot sector or partition table"}, // of whatever kind
}

// signatureOf names what the beginning of a volume looks like, or returns "".
func signatureOf(head []byte) string {
	for _, s := range signatures {
		if end := s.offset + len(s.magic); end <= len(head) && string(head[s.offset:end]) == s.magic {
			return s.what
		}
	}
	return ""
}
