package winlayout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

var errNUL = errors.New("name in reparse point: it contains a NUL")

// MaxReparseData is the largest reparse buffer Windows stores.
const MaxReparseData = 16 << 10

// Offsets in REPARSE_DATA_BUFFER: ReparseDataLength counts from SubstituteNameOffset on. Names are given by
// offset in PathBuffer and length, both in bytes. A symbolic link has Flags before its PathBuffer.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_reparse_data_buffer
const (
	reparseTag           = 0
	reparseDataLength    = 4
	reparseNames         = 8
	reparseSymlinkFlags  = 16
	reparseMountBuffer   = 16
	reparseSymlinkBuffer = 20
	symlinkRelative      = 1 // SYMLINK_FLAG_RELATIVE
)

// DecodeReparsePoint reads a REPARSE_DATA_BUFFER. A tag other than those of links
// yields only the tag.
func DecodeReparsePoint(b []byte) (win.ReparsePoint, error) {
	if len(b) < reparseNames {
		return win.ReparsePoint{}, fmt.Errorf("reparse point: %w", ErrTruncated)
	}
	point := win.ReparsePoint{Tag: win.ReparseTag(binary.LittleEndian.Uint32(b[reparseTag:]))}
	if end := reparseNames + int(binary.LittleEndian.Uint16(b[reparseDataLength:])); end <= len(b) {
		b = b[:end]
	} else {
		return point, fmt.Errorf("reparse point: %w", ErrTruncated)
	}
	var buffer int
	switch point.Tag {
	case win.TagMountPoint:
		buffer = reparseMountBuffer
	case win.TagSymlink:
		buffer = reparseSymlinkBuffer
		if len(b) < buffer {
			return point, fmt.Errorf("reparse point: %w", ErrTruncated)
		}
		point.Relative = binary.LittleEndian.Uint32(b[reparseSymlinkFlags:])&symlinkRelative != 0
	default:
		return point, nil
	}
	if len(b) < buffer {
		return point, fmt.Errorf("reparse point: %w", ErrTruncated)
	}
	name := func(at int) (string, error) {
		start := buffer + int(binary.LittleEndian.Uint16(b[at:]))
		end := start + int(binary.LittleEndian.Uint16(b[at+2:]))
		if end > len(b) || (end-start)%2 != 0 {
			return "", fmt.Errorf("name in reparse point: %w", ErrTruncated)
		}
		text := strings.TrimRight(decodeUTF16(b[start:end]), "\x00")
		if strings.Contains(text, "\x00") { // the kernel does not end names at NUL, others do
			return "", errNUL
		}
		return text, nil
	}
	var err error
	if point.Substitute, err = name(reparseNames); err != nil {
		return point, err
	}
	point.Print, err = name(reparseNames + 4)
	return point, err
}

// EncodeReparsePoint builds the REPARSE_DATA_BUFFER of a link. NTFS wants the substitute name first and the print
// name directly behind, with exact lengths (Wine's init_reparse_mount_point, dlls/ntdll/tests/file.c).
func EncodeReparsePoint(point win.ReparsePoint) ([]byte, error) {
	buffer := reparseMountBuffer
	if point.Tag == win.TagSymlink {
		buffer = reparseSymlinkBuffer
	} else if point.Tag != win.TagMountPoint {
		return nil, fmt.Errorf("reparse tag %#x is not a link", uint32(point.Tag))
	}
	substitute, print := encodeUTF16(point.Substitute), encodeUTF16(point.Print)
	const terminator = 2 // mount points must end both names with NUL; symlinks may
	substituteLength, printLength := len(substitute), len(print)
	size := buffer + substituteLength + terminator + printLength + terminator
	if size > MaxReparseData || substituteLength > MaxReparseData || printLength > MaxReparseData {
		return nil, fmt.Errorf("a link of %d bytes is larger than the %d that Windows stores", size, MaxReparseData)
	}
	b := make([]byte, size)
	binary.LittleEndian.PutUint32(b[reparseTag:], uint32(point.Tag))
	binary.LittleEndian.PutUint16(b[reparseDataLength:], uint16(size-reparseNames))
	binary.LittleEndian.PutUint16(b[reparseNames+2:], uint16(substituteLength))
	binary.LittleEndian.PutUint16(b[reparseNames+4:], uint16(substituteLength+terminator))
	binary.LittleEndian.PutUint16(b[reparseNames+6:], uint16(printLength))
	if point.Tag == win.TagSymlink && point.Relative {
		binary.LittleEndian.PutUint32(b[reparseSymlinkFlags:], symlinkRelative)
	}
	copy(b[buffer:], substitute)
	copy(b[buffer+len(substitute)+terminator:], print)
	return b, nil
}

// EncodeReparseTag builds the REPARSE_DATA_BUFFER that removes a reparse point: its header. Another tag, or data
// behind it, is refused with 4392, 4393 or 4394 (Wine's test_reparse_points, dlls/ntdll/tests/file.c, which sends 24
// bytes).
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_delete_reparse_point
func EncodeReparseTag(tag win.ReparseTag) []byte {
	b := make([]byte, reparseNames)
	binary.LittleEndian.PutUint32(b[reparseTag:], uint32(tag))
	return b
}

// The prefixes of names in Win32, and in the kernel.
const (
	win32Prefix   = `\\?\`
	networkPrefix = `\\`
	kernelPrefix  = `\??\`
	kernelNetwork = kernelPrefix + `UNC\`
)

// SymlinkTo returns the symbolic link that CreateSymbolicLinkW makes to a target in the
// spelling of Win32: C:\dir, \\server\share, \\?\Volume{guid}\, or a relative path. Wine's test_symbolic_link on
// Windows (dlls/kernel32/tests/file.c) has the same, without shares.
func SymlinkTo(target string) win.ReparsePoint {
	link := win.ReparsePoint{Tag: win.TagSymlink, Print: target}
	switch {
	case strings.HasPrefix(target, win32Prefix):
		link.Substitute = kernelPrefix + target[len(win32Prefix):]
	case strings.HasPrefix(target, networkPrefix):
		link.Substitute = kernelNetwork + target[len(networkPrefix):]
	case len(target) >= 3 && target[1:3] == `:\`:
		link.Substitute = kernelPrefix + target
	default:
		link.Substitute, link.Relative = target, true
	}
	return link
}

// MountedFolder returns the mount point of a volume. Its print name, which nothing here reads, is empty. That
// of SetVolumeMountPointW may equal the substitute name: so Wine's dlls/kernel32/tests/volume.c expects, in a
// test that needs an administrator. Q-mount-handle of csi-proxy-verify answers it.
func MountedFolder(id win.VolumeID) win.ReparsePoint {
	return win.ReparsePoint{Tag: win.TagMountPoint, Substitute: kernelPrefix + strings.TrimPrefix(string(id), win32Prefix)}
}
