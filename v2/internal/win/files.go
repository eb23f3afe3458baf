package win

import (
	"context"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Files is the part of a machine that deals with directories and links. All changes are made
// in an open directory, except that CreateDirectory opens the base of its path itself.
type Files interface {
	// FileInfo describes what a path names, links included: one open without access, then
	// FileAttributeTagInfo on that handle, so that attributes and tag are of the same object.
	FileInfo(ctx context.Context, path Path) (FileInfo, error)

	// TargetInfo is FileInfo, except that for a mounted folder it describes the root of the
	// volume. It fails with ERROR_REPARSE_POINT_ENCOUNTERED (4395) for any other link, with
	// ERROR_FILE_NOT_FOUND (2) if the volume is gone, and with ERROR_NOT_READY (21) or
	// ERROR_UNRECOGNIZED_VOLUME (1005) if it cannot be read.
	TargetInfo(ctx context.Context, path Path) (FileInfo, error)

	// ReparsePoint reads the link stored at a path: FSCTL_GET_REPARSE_POINT. It fails with
	// ERROR_NOT_A_REPARSE_POINT (4390) for an ordinary file or directory.
	ReparsePoint(ctx context.Context, path Path) (ReparsePoint, error)

	// Location returns the real location of what a path names, by its volume and long names, as
	// \\?\Volume{guid}\dir: GetFinalPathNameByHandle with VOLUME_NAME_GUID. It fails with
	// ERROR_PATH_NOT_FOUND (3) for a network path.
	Location(ctx context.Context, path Path) (string, error)

	// PathSpace measures the file system that a directory is on, which can be a share:
	// GetDiskFreeSpaceEx. Free is what this process may use of it, by the quotas of a server.
	// It fails with ERROR_REPARSE_POINT_ENCOUNTERED (4395) for a link, mounted folders
	// included, and ERROR_DIRECTORY (267) for a file.
	PathSpace(ctx context.Context, path Path) (Space, error)

	// CreateDirectory makes a directory with the last name of the path's rest, in a directory
	// that exists. It fails with ERROR_REPARSE_POINT_ENCOUNTERED (4395) for a link below the
	// base, and with ERROR_ALREADY_EXISTS (183) for one with the last name.
	CreateDirectory(ctx context.Context, path Path) error

	// OpenDirectory opens a directory, which the caller closes. It fails with
	// ERROR_REPARSE_POINT_ENCOUNTERED (4395) for links and ERROR_DIRECTORY (267) for files.
	OpenDirectory(ctx context.Context, path Path) (Directory, error)
}

// Directory is an open directory. Names are those of its entries, one component each, and
// an entry that is a link is never followed. It stays the directory that was opened: replacing
// a directory with a link after it was checked does not redirect later calls.
type Directory interface {
	Tree

	// FileInfo describes an entry.
	FileInfo(ctx context.Context, name string) (FileInfo, error)

	// Location is Files.Location of an entry.
	Location(ctx context.Context, name string) (string, error)

	// Open opens a directory in this one. It fails with ERROR_REPARSE_POINT_ENCOUNTERED (4395)
	// for links and ERROR_DIRECTORY (267) for files.
	Open(ctx context.Context, name string) (Directory, error)

	// CreateDirectory makes a directory.
	CreateDirectory(ctx context.Context, name string) error

	// CreateDirectoryLink makes a symbolic link to a directory, whether or not the
	// target exists.
	CreateDirectoryLink(ctx context.Context, name, target string) error

	// ReadFile returns at most MaxFile bytes of a file. It fails with ERROR_ACCESS_DENIED (5) for a directory.
	ReadFile(ctx context.Context, name string) (string, error)

	// ReplaceFile makes a file, or replaces one, so that it never has another content than the old one or the new one:
	// it writes and flushes another file, name.new, and renames that with FileRenameInformation.
	ReplaceFile(ctx context.Context, name, content string) error

	// SetMountPoint mounts a volume at an empty directory, and notifies the mount manager. It
	// fails with ERROR_DIR_NOT_EMPTY (145) if it is not empty, or is a link already.
	SetMountPoint(ctx context.Context, name string, volume VolumeID) error

	// ChangedAt is when an entry was made or last changed, also its reparse point: the latest
	// time of FileBasicInfo except that of the last access.
	ChangedAt(ctx context.Context, name string) (time.Time, error)

	// RemoveLink removes an entry if it is exactly this link and has not changed since, and
	// reports whether it was. One handle serves the comparison and the removal, and keeps others
	// from mounting there meanwhile: a link that was made since is never removed. It notifies the
	// mount manager of a mounted folder.
	RemoveLink(ctx context.Context, name string, link ReparsePoint, changedAt time.Time) (removed bool, err error)

	// Close closes the directory. Calls that are still running when their callers have
	// left keep it open until they end.
	Close()
}

// MaxFile is how many bytes ReadFile reads.
const MaxFile = 16 << 10

// Tree is what removing a tree needs of an open directory.
type Tree interface {
	// ReparsePoint is Files.ReparsePoint of an entry.
	ReparsePoint(ctx context.Context, name string) (ReparsePoint, error)

	// ListDirectory opens a directory in this one to list its entries, see List. It fails with
	// ERROR_DIRECTORY (267) for links and files. An empty name is this directory itself.
	ListDirectory(ctx context.Context, name string) (Listing, error)

	// Remove deletes exactly this name: a file, an empty directory, or a link
	// (never what it leads to). A read-only attribute does not prevent it.
	Remove(ctx context.Context, name string) error

	// DeleteMountPoint turns a mounted folder back into an empty directory and
	// notifies the mount manager.
	DeleteMountPoint(ctx context.Context, name string) error
}

// Listing is an open directory whose entries are being listed. The caller closes it.
type Listing interface {
	Tree

	// Next returns the next entries, without "." and "..", in no particular order; none at the end.
	Next(ctx context.Context) ([]DirEntry, error)

	Close()
}

// List calls each for the entries of a directory in another one, a batch at a time. The directory is open during each.
func List(ctx context.Context, in Tree, name string, each func(dir Tree, entries []DirEntry) error) error {
	listing, err := in.ListDirectory(ctx, name)
	if err != nil {
		return err
	}
	defer listing.Close()
	for {
		entries, err := listing.Next(ctx)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := each(listing, entries); err != nil {
			return err
		}
	}
}

// FileInfo describes a file or directory.
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
// files have tags too, but are ordinary files.
func (t ReparseTag) NameSurrogate() bool { return t&0x20000000 != 0 }

// MaxLinks is how many links Windows follows on one path. With more it fails with
// ERROR_CANT_RESOLVE_FILENAME (1921).
// https://learn.microsoft.com/windows/win32/fileio/reparse-points
const MaxLinks = 63

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
// \\server\share, \\?\Volume{guid}\, or a relative path.
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
