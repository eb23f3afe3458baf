// Package filesystem creates, inspects and removes directories and links on a
// Windows node, as CSI drivers need it for staging and publishing volumes.
//
// Start with New and a host:
//
//	fs, err := filesystem.New(fsapi.New())
//
// where fsapi is the package hostapi below this one. The package checks what it
// is given and leaves the work to the host. Paths must be absolute, on a local
// drive, in backslash form; ValidatePathWindows is the exact rule. Without the option
// WorkingDirs the calls can touch every directory, as a driver in a HostProcess container
// can. The daemon always sets it.
//
// Every call may be repeated; a repeated call that finds its work done succeeds.
// A Filesystem is safe for concurrent use. On systems other than Windows, the host
// fails with errors.ErrUnsupported; pkg/winsim provides one that works.
package filesystem

import (
	"context"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/hostctx"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
)

// Interface is the filesystem group. Errors match fs.ErrNotExist, fs.ErrExist,
// fs.ErrPermission, fs.ErrInvalid and context errors where these apply.
type Interface interface {
	// CreateSymlink makes a directory link. It fails if anything but this very
	// link exists at the target path, or if the target's parent is missing.
	CreateSymlink(context.Context, *CreateSymlinkRequest) (*CreateSymlinkResponse, error)
	// IsSymlink is true for a link or mounted folder whose target exists, false
	// for anything else that exists, and an error if the path is missing.
	IsSymlink(context.Context, *IsSymlinkRequest) (*IsSymlinkResponse, error)
	// Mkdir makes a directory and its missing parents.
	Mkdir(context.Context, *MkdirRequest) (*MkdirResponse, error)
	// PathExists looks at the name itself and does not follow a link there. The mounted folder of a
	// volume that is gone with its disk does not exist; nothing removes it but Rmdir, and the daemon.
	PathExists(context.Context, *PathExistsRequest) (*PathExistsResponse, error)
	// PathValid follows links and also takes network paths.
	PathValid(context.Context, *PathValidRequest) (*PathValidResponse, error)
	// Rmdir removes a directory, link or mounted folder; a missing one is a
	// success.
	Rmdir(context.Context, *RmdirRequest) (*RmdirResponse, error)
	// RmdirContents empties a directory; it refuses links and mounted folders.
	RmdirContents(context.Context, *RmdirContentsRequest) (*RmdirContentsResponse, error)
}

// Extended is Interface with what was added since it was published: implementations that drivers have of that still compile.
type Extended interface {
	Interface

	// GetPathStats reports how large and how full the volume or share is that a path leads to: a volume at a mounted folder,
	// a pod's link to one, a link to a share, or a directory in any of them. It follows links as PathValid does.
	GetPathStats(context.Context, *GetPathStatsRequest) (*GetPathStatsResponse, error)
	// ListDirectory returns the names in a directory, and where its links lead. It opens nothing that it lists. It follows
	// links on the way as PathExists does, and refuses a file, a link and a mounted folder.
	ListDirectory(context.Context, *ListDirectoryRequest) (*ListDirectoryResponse, error)
	// SetRecord keeps a note about a staging path, below the kubelet's folder plugins, until an empty one replaces it. It is
	// for package mounter, whose Unstage knows by it what a Stage has begun before a restart.
	SetRecord(context.Context, *SetRecordRequest) (*SetRecordResponse, error)
	// GetRecord returns what SetRecord has kept.
	GetRecord(context.Context, *GetRecordRequest) (*GetRecordResponse, error)
}

// MaxListed is how many entries ListDirectory returns: pods write in the directories that it lists.
const MaxListed = 1000

// Filesystem implements Extended over a host.
type Filesystem struct {
	host     fsapi.HostAPI
	onRemove []func(ctx context.Context, path string)
	onUnlink func(target string)
}

var _ Extended = (*Filesystem)(nil)

// New returns the filesystem group on the given host.
func New(hostAPI fsapi.HostAPI, options ...Option) (*Filesystem, error) {
	const op = "open filesystem library"
	if hostAPI == nil {
		return nil, winerr.New(winerr.Invalid, op, "", "the host API is nil")
	}
	f := &Filesystem{host: hostAPI}
	for _, option := range options {
		if err := option(f); err != nil {
			return nil, winerr.As(winerr.Invalid, op, "", err, "")
		}
	}
	return f, nil
}

// Option changes how the group behaves.
type Option func(*Filesystem) error

// WorkingDirs limits the calls to the given directories: both the path and the target of
// every link on it must lie in one of them. The calls create and remove nothing below a
// mounted volume, which pods write to, and never remove or empty the directories themselves.
// Other calls fail with an error that matches fs.ErrPermission. PathValid is not limited on
// network paths. Roots of drives, and folders of Windows, programs and users, are refused.
//
// The host must be an fsapi.Extended, as those of package hostapi and winsim are.
func WorkingDirs(dirs ...string) Option {
	return func(f *Filesystem) (err error) {
		f.host, err = policy.Limit(f.host, dirs)
		return err
	}
}

// UnsafeWorkingDirs is WorkingDirs that also accepts roots of drives and folders of Windows, programs and users.
func UnsafeWorkingDirs(dirs ...string) Option {
	return func(f *Filesystem) (err error) {
		f.host, err = policy.LimitUnsafe(f.host, dirs)
		return err
	}
}

// OnRemove calls f after each Rmdir, RmdirContents and CreateSymlink, also if the call fails: what was
// at or below the path before may be gone, since a call that removes a tree can fail in the middle.
// The calls wait for f. SMB.LinksGone of package smb is such a function.
func OnRemove(f func(ctx context.Context, path string)) Option {
	return func(fs *Filesystem) error {
		fs.onRemove = append(fs.onRemove, f)
		return nil
	}
}

// OnUnlink calls f for each symbolic link that Rmdir removes, with what it held. Node.NoteUnlinked of package node is such
// a function.
//
// The host must be an fsapi.Extended, as those of package hostapi and winsim are. Otherwise the option has no effect.
func OnUnlink(f func(target string)) Option {
	return func(fs *Filesystem) error {
		fs.onUnlink = f
		return nil
	}
}

func (f *Filesystem) removed(ctx context.Context, path string) {
	for _, call := range f.onRemove {
		call(ctx, path)
	}
}

// ValidatePathWindows reports whether path is one that the calls of this package
// accept: absolute, on a local drive, in backslash form, without relative parts,
// streams, device names or 8.3 aliases. Its errors match fs.ErrInvalid.
func ValidatePathWindows(path string) error {
	_, err := cleanPath("check", path)
	return err
}

func cleanPath(op, path string) (string, error) {
	clean, err := winpath.Clean(path)
	return clean, winerr.As(winerr.Invalid, op, "", err, "")
}

// cleanAnyPath is cleanPath that lets network paths pass as they are, and takes c: for the drive.
func cleanAnyPath(op, path string) (string, error) {
	if len(path) == len("c:") && path[1] == ':' {
		path += `\` // Windows would take the current directory of the drive, which exists if the drive does
	}
	if !strings.HasPrefix(path, `\\`) || strings.HasPrefix(path, `\\?\`) || strings.HasPrefix(path, `\\.\`) {
		return cleanPath(op, path)
	}
	return path, nil
}

// CreateSymlink makes a directory link at TargetPath that leads to SourcePath.
func (f *Filesystem) CreateSymlink(ctx context.Context, request *CreateSymlinkRequest) (*CreateSymlinkResponse, error) {
	const op = "create link"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, _ *CreateSymlinkResponse) error {
		source, err := cleanPath(op, request.SourcePath)
		if err != nil {
			return err
		}
		target, err := cleanPath(op, request.TargetPath)
		if err != nil {
			return err
		}
		err = host.CreateSymlink(source, target)
		f.removed(ctx, target)
		return winerr.Wrap(op, target, err)
	})
}

// IsSymlink reports whether Path is a link or mounted folder whose target exists.
func (f *Filesystem) IsSymlink(ctx context.Context, request *IsSymlinkRequest) (*IsSymlinkResponse, error) {
	const op = "inspect link"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, out *IsSymlinkResponse) (err error) {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		out.IsSymlink, err = host.IsSymlink(path)
		return winerr.Wrap(op, path, err)
	})
}

// Mkdir makes a directory and its missing parents.
func (f *Filesystem) Mkdir(ctx context.Context, request *MkdirRequest) (*MkdirResponse, error) {
	const op = "create directory"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, _ *MkdirResponse) error {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, path, host.Mkdir(path))
	})
}

// PathExists reports whether anything has the name Path.
func (f *Filesystem) PathExists(ctx context.Context, request *PathExistsRequest) (*PathExistsResponse, error) {
	const op = "look up"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, out *PathExistsResponse) (err error) {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		out.Exists, err = host.PathExists(path)
		return winerr.Wrap(op, path, err)
	})
}

// PathValid reports whether Path, local or on the network, can be reached. The response is never
// nil, since callers of the original read it in spite of an error.
func (f *Filesystem) PathValid(ctx context.Context, request *PathValidRequest) (*PathValidResponse, error) {
	const op = "look up"
	return hostctx.Fill(ctx, op, f.host, request, func(host fsapi.HostAPI, out *PathValidResponse) (err error) {
		path, err := cleanAnyPath(op, request.Path)
		if err != nil {
			return err
		}
		out.Valid, err = host.PathValid(path)
		return winerr.Wrap(op, path, err)
	})
}

// GetPathStats implements Extended.
func (f *Filesystem) GetPathStats(ctx context.Context, request *GetPathStatsRequest) (*GetPathStatsResponse, error) {
	const op = "measure"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, out *GetPathStatsResponse) error {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		x, err := hostctx.Extended[fsapi.Extended](host, op, path)
		if err != nil {
			return err
		}
		out.TotalBytes, out.AvailableBytes, err = x.PathStats(path)
		out.UsedBytes = out.TotalBytes - out.AvailableBytes
		return winerr.Wrap(op, path, err)
	})
}

// ListDirectory implements Extended.
func (f *Filesystem) ListDirectory(ctx context.Context, request *ListDirectoryRequest) (*ListDirectoryResponse, error) {
	const op = "list"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, out *ListDirectoryResponse) (err error) {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		x, err := hostctx.Extended[fsapi.Extended](host, op, path)
		if err != nil {
			return err
		}
		out.Entries, out.Truncated, err = x.ListDirectory(path, MaxListed)
		return winerr.Wrap(op, path, err)
	})
}

// SetRecord implements Extended.
func (f *Filesystem) SetRecord(ctx context.Context, request *SetRecordRequest) (*SetRecordResponse, error) {
	const op = "keep record of"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, _ *SetRecordResponse) error {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		x, err := hostctx.Extended[fsapi.Extended](host, op, path)
		if err != nil {
			return err
		}
		return winerr.Wrap(op, path, x.SetRecord(path, request.Record))
	})
}

// GetRecord implements Extended.
func (f *Filesystem) GetRecord(ctx context.Context, request *GetRecordRequest) (*GetRecordResponse, error) {
	const op = "read record of"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, out *GetRecordResponse) error {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		x, err := hostctx.Extended[fsapi.Extended](host, op, path)
		if err != nil {
			return err
		}
		out.Record, out.Problem, err = x.Record(path)
		return winerr.Wrap(op, path, err)
	})
}

// Rmdir removes a directory, a link or a mounted folder.
func (f *Filesystem) Rmdir(ctx context.Context, request *RmdirRequest) (*RmdirResponse, error) {
	const op = "remove"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, _ *RmdirResponse) error {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		if x, ok := host.(fsapi.Extended); ok && f.onUnlink != nil {
			err = x.Unlink(path, request.Force, f.onUnlink)
		} else {
			err = host.Rmdir(path, request.Force)
		}
		f.removed(ctx, path)
		return winerr.Wrap(op, path, err)
	})
}

// RmdirContents removes everything in a directory and keeps the directory.
func (f *Filesystem) RmdirContents(ctx context.Context, request *RmdirContentsRequest) (*RmdirContentsResponse, error) {
	const op = "remove contents of"
	return hostctx.Do(ctx, op, f.host, request, func(host fsapi.HostAPI, _ *RmdirContentsResponse) error {
		path, err := cleanPath(op, request.Path)
		if err != nil {
			return err
		}
		err = host.RmdirContents(path)
		f.removed(ctx, path)
		return winerr.Wrap(op, path, err)
	})
}
