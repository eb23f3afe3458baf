// Package api is the host side of the filesystem group: what pkg/filesystem needs
// from a machine (HostAPI), and our implementation of it.
//
// New returns the machine this program runs on. On systems other than Windows its methods
// fail with an error that matches errors.ErrUnsupported; tests use the emulated node of
// pkg/winsim instead, and drivers can pass a HostAPI of their own.
//
// Paths must be absolute and clean: pkg/filesystem checks them before it calls. Only
// PathValid also takes network paths.
// All hosts made here are safe for concurrent use.
package api

import (
	"context"
	"sync/atomic"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
)

// HostAPI is what the filesystem group does on a machine. Every method may be
// called again with the same arguments.
type HostAPI interface {
	// PathExists reports whether anything has this name, a dangling link included. The mounted folder of a
	// volume that is certainly gone, with its disk, does not count.
	PathExists(path string) (bool, error)
	// PathValid reports whether path, which may be a network path, leads to
	// something that can be opened.
	PathValid(path string) (bool, error)
	// Mkdir makes the directory and every missing parent.
	Mkdir(path string) error
	// Rmdir removes an empty directory, a link or a mounted folder; with force
	// also a file, or a directory with everything in it. It never removes what
	// lies behind a link or a mounted folder. A missing path is a success.
	Rmdir(path string, force bool) error
	// RmdirContents empties a directory and keeps it. It refuses a link or a
	// mounted folder.
	RmdirContents(path string) error
	// CreateSymlink makes newname a directory link to oldname. The same link
	// again is a success; anything else there is an error.
	CreateSymlink(oldname string, newname string) error
	// IsSymlink reports whether path is a link or mounted folder whose target
	// exists. It is an error if path itself does not exist.
	IsSymlink(path string) (bool, error)
}

// Extended is HostAPI with what was added since it was published: hosts that drivers have written still compile. Those of
// this package have it. Package filesystem refuses with errors.ErrUnsupported what another host would need it for.
type Extended interface {
	HostAPI

	// WithContext returns the same host, its calls bounded by ctx.
	WithContext(ctx context.Context) HostAPI
	// Within returns the same host, limited by a policy. Nil means no limits.
	Within(p *policy.Policy) HostAPI
	// PathStats returns the size of the volume or share that a path leads to, after every link,
	// and how much of it can be used.
	PathStats(path string) (totalBytes, availableBytes int64, err error)
	// ListDirectory returns at most limit entries of a directory, by name, and whether there are
	// more. It refuses a file, a link and a mounted folder.
	ListDirectory(path string, limit int) (entries []DirectoryEntry, more bool, err error)
	// Unlink is Rmdir. It calls note before it removes a symbolic link at the path, with what the link holds.
	Unlink(path string, force bool, note func(target string)) error
	// SetRecord keeps a text of JSON for a path below the kubelet's folder plugins, in
	// plugins\csi-proxy-mounter\HASH.json, and removes it for an empty one. It is whole at every moment.
	SetRecord(path, text string) error
	// Record returns that text, "" if there is none, or what is wrong with it.
	Record(path string) (text, problem string, err error)
}

// DirectoryEntry is a name in a directory.
type DirectoryEntry struct {
	Name string
	Type EntryType
	// Target is where a link leads, or the volume of a mounted folder.
	Target string
}

// EntryType is what an entry is.
type EntryType string

// The types. The words are those on the wire.
const (
	OtherEntry        EntryType = "other" // another kind of reparse point, or a link that cannot be read
	FileEntry         EntryType = "file"
	SubdirectoryEntry EntryType = "directory"
	LinkEntry         EntryType = "link"
	MountEntry        EntryType = "mount"
)

// New returns the host of the machine this program runs on.
func New() HostAPI { return newHost(local.Machine(), lostvolume.ThisMachine) }

// NewOn returns the host of a given machine. Code outside this module can pass only
// emulated machines: NewOn(node) with a *winsim.Node.
func NewOn(m win.Machine) HostAPI { return newHost(m, lostvolume.NewFinder()) }

func newHost(m win.Machine, finder lostvolume.Finder) HostAPI {
	var unlimited *policy.Policy
	return boundHost{host: host{m: m, files: unlimited.Reach(m), lost: finder, swept: &atomic.Bool{}}, ctx: context.Background()} //nolint:forbidigo // the published HostAPI has no context; WithContext replaces this one
}
