package winsim

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// link is a reparse point, which need not be a link.
type link struct {
	win.ReparsePoint
	malformed bool // its data make no sense
	announced bool // the mount manager was told of it
}

// isLink tells what stands for something else, as the name surrogate bit says, from files
// with other reparse points. Those are what they look like, as if the driver were there
// that fetches their data: deduplicated and compressed files, those of a cloud, layers of
// containers.
// https://learn.microsoft.com/windows/win32/fileio/reparse-point-tags
func isLink(e *entry) bool { return e.link != nil && e.link.Tag.NameSurrogate() }

// newLink makes a directory that is a link.
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

// errCantAccessFile is ERROR_CANT_ACCESS_FILE: no driver knows the tag of a link that is to
// be followed, as with those of WSL. In the kernel it is STATUS_IO_REPARSE_TAG_NOT_HANDLED.
// https://learn.microsoft.com/windows/win32/debug/system-error-codes--1700-3999-
const errCantAccessFile winerr.Code = 1920

// follow returns the path that a link at root+before leads to, with the names that
// came after it. Relative targets start at the link's directory, or at the root of its
// volume if they begin with a backslash; ".." in a target is resolved by its spelling.
// Windows resolves some links before a ".." first, depending on how they were reached.
func (l *link) follow(root, before, after string) (string, error) {
	switch {
	case l.malformed:
		return "", winerr.InvalidReparseData
	case l.Tag != win.TagSymlink && l.Tag != win.TagMountPoint:
		return "", errCantAccessFile
	}
	target := l.Target()
	if l.Relative {
		target = root + relativeTo(before, target)
	}
	return strings.TrimRight(target, `\`) + `\` + after, nil
}

// relativeTo joins a relative target with the names of the directory it starts from.
func relativeTo(dir, target string) string {
	var names []string
	if !strings.HasPrefix(target, `\`) && dir != "" {
		names = strings.Split(strings.TrimSuffix(dir, `\`), `\`)
	}
	for part := range strings.SplitSeq(target, `\`) {
		switch part {
		case "", ".":
		case "..":
			names = names[:max(0, len(names)-1)]
		default:
			names = append(names, part)
		}
	}
	return strings.Join(names, `\`)
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

// checkFits is what a file system says to a reparse point: one whose two names do not fit into
// a REPARSE_DATA_BUFFER is too long, and FAT has none.
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

// taggedLink is the reparse point with a tag and the data behind the header, in hexadecimal
// digits. Nobody but the two kinds of link looks at the data.
func taggedLink(tag win.ReparseTag, data string) (*link, *ModelError) {
	body, err := hex.DecodeString(strings.ReplaceAll(data, " ", ""))
	if err != nil {
		return nil, problem("tagData", "%q is not a string of hexadecimal bytes", data)
	}
	const header = 8
	if len(body) > winlayout.MaxReparseData-header {
		return nil, problem("tagData", "%d bytes exceed the limit of %d", len(body), winlayout.MaxReparseData-header)
	}
	buffer := binary.LittleEndian.AppendUint32(nil, uint32(tag))
	buffer = binary.LittleEndian.AppendUint32(buffer, uint32(len(body)))
	point, err := winlayout.DecodeReparsePoint(append(buffer, body...))
	return &link{ReparsePoint: point, malformed: err != nil}, nil
}
