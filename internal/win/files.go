package win

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winpath"
)

// Files is the part of a machine that deals with directories and links.
type Files interface {
	// FileInfo describes path itself: CreateFile with
	// FILE_FLAG_OPEN_REPARSE_POINT and no access, then FileAttributeTagInfo on
	// that handle, so attributes and tag are of the same object.
	FileInfo(ctx context.Context, path string) (FileInfo, error)

	// TargetInfo is FileInfo of what path leads to after following every link.
	// It fails as opening the path would: 2 or 3 for a dangling link, 21 or 1005
	// for a mounted volume that cannot be read, 53 for a server that is gone.
	TargetInfo(ctx context.Context, path string) (FileInfo, error)

	// Tree by path.
	Tree

	// CreateDirectory makes one directory; its parent must exist.
	CreateDirectory(ctx context.Context, path string) error

	// CreateDirectoryLink makes a symbolic link to a directory, whether or not
	// the target exists: CreateSymbolicLinkW with SYMBOLIC_LINK_FLAG_DIRECTORY.
	CreateDirectoryLink(ctx context.Context, path, target string) error
}

// Tree is what removing a tree needs. A machine offers it by path; an open directory
// offers it by the names of its entries, and then means the directory that was opened,
// whatever its path leads to by now. A removal that went by paths could be led out of
// its tree by whoever replaces a directory with a link at the right moment.
type Tree interface {
	// ReparsePoint reads the link stored at name: FSCTL_GET_REPARSE_POINT.
	// Code 4390 means it is an ordinary file or directory.
	ReparsePoint(ctx context.Context, name string) (ReparsePoint, error)

	// ListDirectory opens a directory and calls each for its entries, a batch at
	// a time, without "." and "..", in no particular order. It refuses to list
	// through a link: code 267. The open directory is valid during each.
	ListDirectory(ctx context.Context, name string, each func(dir Tree, entries []DirEntry) error) error

	// Remove deletes exactly this name: a file, an empty directory, or a link
	// (never what it leads to). A read-only attribute does not prevent it.
	Remove(ctx context.Context, name string) error

	// DeleteMountPoint turns a mounted folder back into an empty directory and
	// tells the mount manager: DeleteVolumeMountPointW.
	DeleteMountPoint(ctx context.Context, name string) error
}

// FileInfo is what one open of a file tells.
type FileInfo struct {
	Directory bool
	ReadOnly  bool
	Tag       ReparseTag // 0 for ordinary files and directories
}

// DirEntry is a name in a directory with the FileInfo that the listing already
// carries, so that walking a tree needs no call per entry. The name is one component
// of a path: not empty and without a separator.
type DirEntry struct {
	Name string
	FileInfo
}

// ReparseTag says who interprets a reparse point. Tags are compared for equality;
// they are not bit masks, although the original treated them so.
// https://learn.microsoft.com/windows/win32/fileio/reparse-point-tags
type ReparseTag uint32

// The tags we interpret.
const (
	TagMountPoint ReparseTag = 0xA0000003 // junctions and mounted folders
	TagSymlink    ReparseTag = 0xA000000C
)

// NameSurrogate reports whether the tag stands for another named object, so that
// deleting it must never reach through it. Deduplicated, compressed and cloud
// files have tags too, but are what they look like.
func (t ReparseTag) NameSurrogate() bool { return t&0x20000000 != 0 }

// ReparsePoint is a decoded link.
type ReparsePoint struct {
	Tag ReparseTag
	// Substitute is the target as the kernel uses it: \??\C:\dir,
	// \??\Volume{guid}\, \??\UNC\server\share, or a relative path.
	Substitute string
	// Print is the target as shown to people; it may be empty.
	Print    string
	Relative bool // only symbolic links
}

const (
	ntPrefix     = `\??\`
	win32Prefix  = `\\?\`
	volumePrefix = ntPrefix + `Volume{`
)

// MountedVolume returns the id \\?\Volume{guid}\ if the link is a mounted folder,
// which is a mount point whose target is the root of a volume and nothing below.
func (r ReparsePoint) MountedVolume() (id string, ok bool) {
	if r.Tag != TagMountPoint || len(r.Substitute) < len(volumePrefix) ||
		!winpath.Equal(r.Substitute[:len(volumePrefix)], volumePrefix) {
		return "", false
	}
	id, ok = strings.CutSuffix(r.Substitute[len(volumePrefix):], `}\`)
	if !ok || !isGUID(id) {
		return "", false
	}
	return win32Prefix + `Volume{` + id + `}\`, true
}

// isGUID reports whether s has the form 8-4-4-4-12 of hexadecimal digits.
func isGUID(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c == '-') != (i == 8 || i == 13 || i == 18 || i == 23) ||
			(c != '-' && !strings.ContainsRune("0123456789abcdefABCDEF", rune(c))) {
			return false
		}
	}
	return len(s) == 36
}

// Target returns where the link leads in the spelling of Win32: C:\dir,
// \\server\share, \\?\Volume{guid}\ and the like, or a relative path.
func (r ReparsePoint) Target() string {
	rest, absolute := strings.CutPrefix(r.Substitute, ntPrefix)
	switch {
	case !absolute:
		return r.Substitute
	case len(rest) >= 4 && winpath.Equal(rest[:4], `UNC\`):
		return `\\` + rest[4:]
	case len(rest) >= 2 && rest[1] == ':':
		return rest
	default:
		return win32Prefix + rest // a volume, GLOBALROOT\Device\... and other objects
	}
}
