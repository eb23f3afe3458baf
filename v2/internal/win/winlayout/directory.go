package winlayout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// Offsets in FILE_FULL_DIR_INFORMATION, one per entry. For entries with FILE_ATTRIBUTE_REPARSE_POINT the
// field EaSize holds the tag, as in Wine's test_info_classes on Windows (dlls/ntdll/tests/directory.c).
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_file_full_dir_information
const (
	dirNext       = 0
	dirAttributes = 56
	dirNameLength = 60
	dirEaSize     = 64
	dirName       = 68
)

// File attributes, in directory entries and handle information.
// https://learn.microsoft.com/windows/win32/fileio/file-attribute-constants
const (
	attributeReadOnly  = 0x1
	attributeDirectory = 0x10
	attributeReparse   = 0x400
)

// FileInfo makes the seam's value from Windows' attributes and tag.
func FileInfo(attributes, tag uint32) win.FileInfo {
	info := win.FileInfo{
		Directory: attributes&attributeDirectory != 0,
		ReadOnly:  attributes&attributeReadOnly != 0,
	}
	if attributes&attributeReparse != 0 {
		info.Tag = win.ReparseTag(tag)
	}
	return info
}

// ErrBadName reports a directory entry whose name is not one component of a path.
// Other systems can write such names into an NTFS volume; to remove "link\file" by
// that name would remove a file behind the link.
var ErrBadName = errors.New("an entry's name is empty or contains a separator")

// DecodeDirectory reads a chain of FILE_FULL_DIR_INFORMATION, and leaves out "." and "..".
func DecodeDirectory(b []byte) ([]win.DirEntry, error) {
	var entries []win.DirEntry
	for {
		if len(b) < dirName {
			return entries, fmt.Errorf("directory entry: %w", ErrTruncated)
		}
		end := dirName + int(binary.LittleEndian.Uint32(b[dirNameLength:]))
		if end > len(b) || end < dirName || (end-dirName)%2 != 0 {
			return entries, fmt.Errorf("name in directory entry: %w", ErrTruncated)
		}
		switch name := decodeUTF16(b[dirName:end]); {
		case name == "." || name == "..":
		case name == "" || strings.ContainsAny(name, "\\/\x00"):
			return entries, fmt.Errorf("directory entry %q: %w", name, ErrBadName)
		default:
			entries = append(entries, win.DirEntry{
				Name: name,
				FileInfo: FileInfo(binary.LittleEndian.Uint32(b[dirAttributes:]),
					binary.LittleEndian.Uint32(b[dirEaSize:])),
			})
		}
		next := int(binary.LittleEndian.Uint32(b[dirNext:]))
		switch {
		case next == 0:
			return entries, nil
		case next < dirName || next > len(b):
			// An offset that does not advance would loop forever.
			return entries, fmt.Errorf("chain of directory entries: %w", ErrTruncated)
		}
		b = b[next:]
	}
}
