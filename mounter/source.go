package mounter

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// Source says what a volume is on. It is a [Disk], an [SMB] share or a disk of an [ISCSI] target; no type
// of another package can be one.
type Source interface {
	// check refuses a request that the source cannot serve.
	check(request StageRequest) error
	// stage makes the volume appear at a path, which is locked.
	stage(ctx context.Context, m *Mounter, path string, request StageRequest) (Staged, error)
	// release ends what Stage has begun and is not to be seen at the path. The path is removed afterwards.
	release(ctx context.Context, m *Mounter, path string, request UnstageRequest) error
	// keys is the source without what must not be remembered.
	keys() Source
}

// Disk says which disk of the node to use, by one key or several: serial number, page 83, LUN, NVMe ids,
// number and others. Its fields are those of node.Query:
//
//	mounter.Disk{Serial: "WINSIM0001"}
//	mounter.Disk{LUN: "0", Adapter: "1"}
type Disk nodeapi.Query

// DiskNumber is the disk with a number, the N of \\.\PhysicalDriveN. Windows may give it to another disk
// after a restart.
func DiskNumber(n uint32) Disk { return Disk{Number: &n} }

// SMB is a share with what is needed to connect to it.
type SMB struct {
	// Remote is \\server\share, or a directory in the share. Slashes can be of either kind.
	Remote string
	// Username is the account, DOMAIN\user or user@domain if it is in a domain. Without a name the
	// server must admit guests.
	Username string
	// Password is never logged.
	Password string
	// Privacy says whether the server must encrypt. The default is that of the daemon's flag, or
	// required.
	Privacy Privacy
	// RefuseOtherUser fails the call if the share is in use with another user, whose rights the
	// volume would get. It compares accounts, not passwords.
	RefuseOtherUser bool
}

// Privacy says whether a server must encrypt what it sends and receives.
type Privacy int

// The values of Privacy.
const (
	PrivacyDefault Privacy = iota
	PrivacyRequired
	PrivacyNotRequired
)

const opCheck = "check request"

// sourceOf returns the value of a source that is a pointer, and nil for a nil pointer.
func sourceOf(s Source) Source {
	switch s := s.(type) {
	case *Disk:
		return valueOf(s)
	case *SMB:
		return valueOf(s)
	case *ISCSI:
		return valueOf(s)
	default:
		return s
	}
}

func valueOf[T Source](s *T) Source {
	if s == nil {
		return nil
	}
	return *s
}

// checkText fails if the daemon could not read a text as the library does: gRPC sends only UTF-8.
func checkText(texts ...string) error {
	if slices.ContainsFunc(texts, func(text string) bool { return !utf8.ValidString(text) }) {
		return newError(failure.Invalid, opCheck, "", "one of its texts is not valid UTF-8")
	}
	return nil
}

// checkFileSystem refuses what a disk cannot be formatted with.
func checkFileSystem(r StageRequest) error {
	if err := checkText(r.FSType, r.Format.Label, r.Format.RootAccess); err != nil {
		return err
	}
	if fs := strings.ToLower(r.FSType); fs != "" && fs != "ntfs" && fs != "refs" && !slices.Contains(linuxFileSystems, fs) {
		return newError(failure.Invalid, opCheck, "", "file system %q is not supported on Windows nodes; use ntfs or refs", r.FSType)
	}
	return nil
}

// linuxFileSystems are those that StorageClasses name for nodes with Linux, and provisioners by default.
var linuxFileSystems = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "reiserfs", "zfs"}

// optionsOf splits mount flags as Linux does, which joins them with commas.
func optionsOf(flags []string) []string { return strings.Split(strings.Join(flags, ","), ",") }

// linuxOptions are mount options that StorageClasses name for nodes with Linux.
var linuxOptions = []string{
	"actimeo", "async", "atime", "cache", "cifsacl", "defaults", "dir_mode", "discard", "domain", "dynperm", "exec", "file_mode", "fsc", "gid",
	"hard", "iocharset", "lazytime", "max_channels", "mfsymlinks", "multichannel", "nobrl", "noatime", "nodev", "nodiratime", "nodiscard", "noexec",
	"noperm", "nosharesock", "nosuid", "nouuid", "password", "relatime", "rsize", "rw", "sec", "serverino", "soft", "strictatime", "sync", "uid",
	"username", "vers", "wsize",
}

// ignoreLinux returns a request that was checked without what has a meaning only on Linux. Each value is logged once if it is one
// of these lists: anything else may be of any length, or a part of a password.
func (m *Mounter) ignoreLinux(ctx context.Context, r StageRequest) StageRequest {
	once := func(message, value string, known []string) {
		if !slices.Contains(known, value) {
			value = "another"
		}
		if _, known := m.ignored.LoadOrStore(message+value, true); !known {
			klog.FromContext(ctx).Info(message, "value", value)
		}
	}
	_, share := r.Source.(SMB)
	switch fs := strings.ToLower(r.FSType); {
	case fs == "": // the default of the node
	case share:
		once("The server chooses the file system of a share: ignoring that of the request", fs, linuxFileSystems)
		r.FSType = ""
	case slices.Contains(linuxFileSystems, fs):
		once("Windows has no such file system: a new one is of the node's default", fs, linuxFileSystems)
		r.FSType = ""
	}
	for _, option := range optionsOf(r.MountFlags) {
		if name, _, _ := strings.Cut(option, "="); name != "" && name != "ro" {
			once("Windows has no such mount option: ignoring it", name, linuxOptions)
		}
	}
	return r
}

func (d Disk) check(r StageRequest) error {
	if d == (Disk{}) {
		return newError(failure.Invalid, opCheck, "", "the disk has no keys; set a serial number, a LUN or another one")
	}
	return cmp.Or(checkFileSystem(r), checkText(d.Path, d.Bus, d.Model, d.Serial, d.SerialPrefix, d.Page83, d.LUN, d.Adapter, d.EUI64, d.NGUID))
}

func (d Disk) stage(ctx context.Context, m *Mounter, path string, request StageRequest) (Staged, error) {
	there, err := m.checkFree(ctx, path, request)
	if err != nil {
		return Staged{}, err
	}
	disk, err := m.find(ctx, d)
	if err != nil {
		return Staged{}, err
	}
	return m.stageDisk(ctx, disk, d, path, there, request)
}

func (d Disk) keys() Source { return d }

func (d Disk) release(ctx context.Context, m *Mounter, path string, request UnstageRequest) error {
	disk, err := m.node.findDisk(ctx, nodeapi.Query(d))
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is detached already
		return nil
	case failure.ClassOf(err) == failure.InUse:
		// A copy has the same keys. Nothing is mounted at the path, so the pod can end.
		klog.FromContext(ctx).Info("Disk stays in its state, because it cannot be distinguished from others", "path", path, "reason", err.Error())
		return nil
	case err != nil:
		return err
	}
	unlock, err := m.locks.disk(ctx, disk.number)
	if err != nil {
		return err
	}
	defer unlock()
	volumes, err := m.node.volumes(ctx, disk.number)
	if err != nil {
		return m.unlessGone(ctx, disk.number, err)
	}
	for _, id := range volumes {
		// A call of Stage that was interrupted may still mount it. This waits for that, and otherwise does nothing.
		switch err := m.node.unmount(ctx, id, path); {
		case failure.ClassOf(err) == failure.InUse: // the path shows another volume: the disk is another one, or is new
			klog.FromContext(ctx).Info("Disk stays in its state, because its volume is another one", "path", path, "reason", err.Error())
			return nil
		case ignoreMissing(err) != nil:
			return err
		}
	}
	_, err = m.letGo(ctx, disk, path, request.Offline)
	return err
}

func (s SMB) check(r StageRequest) error {
	switch {
	case s.Remote == "":
		return newError(failure.Invalid, opCheck, "", `the share has no name; set Remote to \\server\share`)
	case !isRemote(s.Remote):
		return newError(failure.Invalid, opCheck, "", `%.250q is not a share; set Remote to \\server\share`, s.Remote)
	case r.Format != FormatOptions{}:
		return newError(failure.Invalid, opCheck, "", "a share is not formatted; remove the format options")
	case r.ReadOnly:
		return newError(failure.Invalid, opCheck, "", "a share cannot be staged read-only; use an account of the server that can only read")
	}
	return checkText(s.Remote, s.Username, s.Password)
}

func (s SMB) stage(ctx context.Context, m *Mounter, path string, _ StageRequest) (Staged, error) {
	return Staged{}, m.stageShare(ctx, path, s)
}

func (s SMB) keys() Source { return SMB{Remote: s.Remote} }

// release disconnects the share. If a call of Stage that was interrupted still connects it, and makes the link, this
// waits for that.
func (s SMB) release(ctx context.Context, m *Mounter, path string, _ UnstageRequest) error {
	return m.node.unmapShare(ctx, s.Remote, path)
}
