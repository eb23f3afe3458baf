package winsim

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// link is a reparse point, of a link or of another kind.
type link struct {
	win.ReparsePoint
	malformed bool   // its data are malformed
	tagData   string // of the model, in hexadecimal digits
	announced bool   // the mount manager knows it

	// toOlder is the answer to opens relative to handles that are older than the link. With 0 they succeed.
	toOlder winerr.Code
}

// isLink reports whether the name surrogate bit is set. Files with other reparse points act as
// ordinary files, as if the driver that fetches their data were present: deduplicated,
// compressed and cloud files, container layers.
// https://learn.microsoft.com/windows/win32/fileio/reparse-point-tags
func isLink(e *entry) bool { return e.link != nil && e.link.Tag.NameSurrogate() }

func newLink(point win.ReparsePoint) *entry {
	e := newDirectory()
	e.link = &link{ReparsePoint: point}
	return e
}

// read is FSCTL_GET_REPARSE_POINT, decoded.
func (l *link) read() (win.ReparsePoint, error) {
	switch {
	case l == nil:
		return win.ReparsePoint{}, winerr.NotAReparsePoint
	case l.malformed:
		return win.ReparsePoint{}, winerr.InvalidReparseData
	}
	return l.ReparsePoint, nil
}

// errCantAccessFile is ERROR_CANT_ACCESS_FILE: no driver handles the tag of a link to follow,
// such as a WSL link. The kernel's code is STATUS_IO_REPARSE_TAG_NOT_HANDLED. Wine's dlls/ntdll/tests/file.c has it on
// Windows, also for a link on the way.
// https://learn.microsoft.com/windows/win32/debug/system-error-codes--1700-3999-
const errCantAccessFile winerr.Code = 1920

// follow returns the target of a link at root\before, plus the names after the link. Relative
// targets start at the link's directory, or at the root of its volume if they begin with a
// backslash; ".." in a target is resolved by its spelling. Windows resolves some links before a
// ".." first, depending on how they were reached.
func (l *link) follow(root, before, after string) (string, error) {
	switch {
	case l.malformed:
		return "", winerr.InvalidReparseData
	case l.Tag != win.TagSymlink && l.Tag != win.TagMountPoint:
		return "", errCantAccessFile
	}
	target := l.Target()
	if l.Relative {
		names, err := relativeTo(before, target)
		if err != nil {
			return "", err
		}
		target = root + `\` + names
	}
	return strings.TrimRight(target, `\`) + `\` + after, nil
}

// relativeTo joins a relative target with the names of the directory it starts from. Windows follows neither
// doubled separators nor dots beyond the root: Wine's dlls/ntdll/tests/file.c, which passes on Windows.
func relativeTo(dir, target string) (string, error) {
	if strings.Contains(target, `\\`) {
		return "", winerr.InvalidName
	}
	var names []string
	if !strings.HasPrefix(target, `\`) && dir != "" {
		names = strings.Split(strings.TrimSuffix(dir, `\`), `\`)
	}
	for part := range strings.SplitSeq(target, `\`) {
		switch part {
		case "", ".":
		case "..":
			if len(names) == 0 {
				return "", winerr.InvalidReparseData
			}
			names = names[:len(names)-1]
		default:
			names = append(names, part)
		}
	}
	return strings.Join(names, `\`), nil
}

// leadsToFile returns the error of a link to a file that Windows does not follow there: a junction
// since Windows 10 1709, and a symbolic link whose target ends with a separator. Wine's
// dlls/ntdll/tests/file.c has both.
func (l *link) leadsToFile() error {
	switch {
	case l.Tag == win.TagMountPoint:
		return winerr.Directory
	case strings.HasSuffix(l.Target(), `\`):
		return winerr.InvalidName
	default:
		return nil
	}
}

// symlinkTo stores a target as CreateSymbolicLinkW does: one with a drive is made
// absolute and loses its dots, one without stays as it is.
func symlinkTo(target string) win.ReparsePoint {
	link := winlayout.SymlinkTo(target)
	if len(target) >= 2 && target[1] == ':' {
		link.Substitute, link.Relative = `\??\`+target[:2]+withoutDots(target[2:]), false
	}
	return link
}

// withoutDots resolves "." and ".." in a path by its spelling.
func withoutDots(path string) string {
	if !strings.Contains(path, ".") {
		return path
	}
	var names []string
	for name := range strings.SplitSeq(path, `\`) {
		switch name {
		case ".":
		case "..":
			names = names[:max(min(1, len(names)), len(names)-1)]
		default:
			names = append(names, name)
		}
	}
	return strings.Join(names, `\`)
}

// checkFits returns the error for a reparse point that a file system cannot store: its names
// exceed a REPARSE_DATA_BUFFER, or the file system is FAT.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntifs/ns-ntifs-_reparse_data_buffer
func (l *link) checkFits(fs *fileSystem) error {
	if l == nil {
		return nil
	}
	if l.Tag == win.TagSymlink || l.Tag == win.TagMountPoint {
		if strings.Contains(l.Substitute, "\x00") {
			return winerr.InvalidName
		}
		if _, err := winlayout.EncodeReparsePoint(l.ReparsePoint); err != nil {
			return winerr.FilenameExcedRange
		}
	}
	if fs.kind == FAT32 {
		return winerr.InvalidFunction
	}
	return nil
}

// reparseHeader is the size of tag and length before the data of a reparse point.
const reparseHeader = 8

// taggedLink is a reparse point with a tag, and data after the header in hexadecimal digits.
// Only the two kinds of link use the data.
func taggedLink(tag win.ReparseTag, data string) (*link, *ModelError) {
	body, err := hex.DecodeString(strings.ReplaceAll(data, " ", ""))
	if err != nil {
		return nil, problem("tagData", "%q is not a string of hexadecimal bytes", data)
	}
	if len(body) > winlayout.MaxReparseData-reparseHeader {
		return nil, problem("tagData", "%d bytes exceed the limit of %d", len(body), winlayout.MaxReparseData-reparseHeader)
	}
	buffer := binary.LittleEndian.AppendUint32(nil, uint32(tag))
	buffer = binary.LittleEndian.AppendUint32(buffer, uint32(len(body)))
	point, err := winlayout.DecodeReparsePoint(append(buffer, body...))
	return &link{ReparsePoint: point, malformed: err != nil, tagData: data}, nil
}
