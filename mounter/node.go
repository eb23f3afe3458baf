package mounter

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// foundDisk is a disk that was found: its number, and what it must be when it is changed. Windows gives the number of a
// disk that has left to the next one, within seconds.
type foundDisk struct {
	number uint32
	is     diskapi.MustBe
	keys   nodeapi.Query // by which a daemon without an inspector has found it
}

// isAnother reports whether an error can mean that another disk has the number now, or none.
func isAnother(err error) bool {
	class := failure.ClassOf(err)
	return class == failure.Busy || class == failure.NotFound
}

// node is what the verbs need of a Windows node. Its two kinds are the two modes. Paths are those
// that Path returns, volumes are named by id, \\?\Volume{GUID}\. Every method can be repeated.
type node interface {
	// findDisk returns the one disk that has the keys.
	findDisk(ctx context.Context, query nodeapi.Query) (foundDisk, error)
	// rescan makes Windows look for disks that were attached or have grown.
	rescan(ctx context.Context) error
	diskSize(ctx context.Context, disk uint32) (int64, error)
	// partition gives a blank disk one partition, and waits for its volume.
	// It and those below fail, and change nothing, if the disk is another one.
	partition(ctx context.Context, disk foundDisk) error
	setOnline(ctx context.Context, disk foundDisk, online bool) error
	// onlineReadOnly brings a disk online that is never online and writable meanwhile.
	onlineReadOnly(ctx context.Context, disk foundDisk) error
	isReadOnly(ctx context.Context, disk foundDisk) (bool, error)
	setReadOnly(ctx context.Context, disk foundDisk, readOnly bool) error

	volumes(ctx context.Context, disk uint32) ([]string, error)
	diskOf(ctx context.Context, volume string) (uint32, error)
	isFormatted(ctx context.Context, volume string) (bool, error)
	// format makes a file system of a type, which can be empty.
	format(ctx context.Context, volume, fsType string, options FormatOptions) error
	health(ctx context.Context, volume string) (volumeapi.Health, error)
	mount(ctx context.Context, volume, path string) error
	unmount(ctx context.Context, volume, path string) error
	// mountedAt returns the volume at a path, or at the end of a link there, even if it does not answer.
	mountedAt(ctx context.Context, path string) (volume string, err error)
	// flush writes what is cached. With the path at which the volume is unmounted next it fails once if the disk
	// fails; then loss says what may be lost.
	flush(ctx context.Context, volume, path string) (loss string, err error)
	// grow makes a volume as large as its disk has room for.
	grow(ctx context.Context, volume string) error
	volumeSpace(ctx context.Context, volume string) (Usage, error)

	// pathSpace measures the share that a path leads to.
	pathSpace(ctx context.Context, path string) (Usage, error)
	exists(ctx context.Context, path string) (bool, error)
	// isLiveLink reports whether a path is a link or mounted folder whose target exists.
	isLiveLink(ctx context.Context, path string) (bool, error)
	// list returns what is in a directory, and whether that is all.
	list(ctx context.Context, dir string) (entries []fsapi.DirectoryEntry, complete bool, err error)
	makeDir(ctx context.Context, path string) error
	link(ctx context.Context, path, target string) error
	// remove removes a link, a mounted folder or an empty folder, and nothing behind it.
	remove(ctx context.Context, path string) error

	mapShare(ctx context.Context, share SMB, path string) error
	// unmapShare disconnects a share unless a link uses it that is not at the path except.
	unmapShare(ctx context.Context, remote, except string) error

	// sessions returns the sessions of an iSCSI target, or of the target that has the disk with a number.
	sessions(ctx context.Context, name string) ([]nodeapi.Session, error)
	// addPortal makes Windows know the targets of a portal.
	addPortal(ctx context.Context, at portal) error
	// logIn does nothing if the target has a session with a connection, unless it is another path to its disks.
	logIn(ctx context.Context, at portal, target string, chap CHAP) error
	logOut(ctx context.Context, target string) error
	setMutualSecret(ctx context.Context, secret string) error

	describe(ctx context.Context, parts ...nodeapi.Part) (*nodeapi.Description, error)
	// describeVolumes describes at least the volumes with these ids.
	describeVolumes(ctx context.Context, ids []string) (*nodeapi.Description, error)
	close() error
}
