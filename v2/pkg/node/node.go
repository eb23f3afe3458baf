// Package node describes the storage of a Windows node as a whole: its disks with every key by
// which a driver can know them, partitions, volumes, mount paths, links, shares and iSCSI sessions.
// It also finds a disk by any of those keys.
//
// Start with New:
//
//	machine, err := node.New()
//	disk, err := machine.FindDisk(ctx, node.Query{EUI64: "10cc9636b6e3ce3b"})
//
// It must work on a node that is in trouble: a description names whatever does not answer, with the
// reason, and the rest hardly waits for it. It changes nothing: a volume that is offline stays
// offline. It asks file servers only if the caller wants to know whether they answer, see
// ShareAnswers.
//
// Heal and RemoveUnlinked are the exceptions: they rescan disks, and remove links of kubelet to volumes and shares that
// are gone. Heal asks servers, too.
//
// The package compiles on every system. On systems other than Windows, a Node that New returns
// fails with an error for which errors.Is(err, errors.ErrUnsupported) holds; one that NewOn returns
// works everywhere, on an emulated node.
//
// Within v2 it grows compatibly: structures get fields, so name those that you set.
package node

import (
	"context"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/shared"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Interface is what a Node does, for drivers that replace it in tests.
type Interface interface {
	Describe(ctx context.Context, parts ...Part) (*Description, error)
	DescribeVolumes(ctx context.Context, ids ...string) ([]Volume, error)
	SessionsOf(ctx context.Context, targets []string, disks ...uint32) ([]Session, error)
	FindDisk(ctx context.Context, query Query) (*Disk, error)
	Heal(ctx context.Context, options HealOptions) (*Healing, error)
}

var _ Interface = (*Node)(nil)

// Node is a machine whose storage can be described. It is safe for concurrent use.
type Node struct {
	m        win.Machine
	disks    diskapi.DiskAPI
	limits   *policy.Policy  // nil: no links are searched
	smb      smbapi.Extended // nil: only Windows reports mappings
	turns    *tasks.Locks[struct{}]
	searches *searches
	known    knownDisks
	slow     tasks.SlowObjects

	volumeHost volumeapi.Extended // nil: nothing is healed
	lost       lostvolume.Finder
	onRemove   func(ctx context.Context, path string) // nil for nothing
	heals      tasks.Locks[struct{}]
	began      time.Duration // of this Node, by Elapsed
	started    time.Time     // see noteStart; heals guards it
	used       usedTargets
	healCalls  healCalls                // heals guards it
	gone       map[linkIdentity]absence // at the last call of Heal; heals guards it
	unlinked   unlinked
}

// Option changes what New and NewOn return.
type Option func(*Node) error

// WorkingDirs are the directories in which Describe and Heal search for links. It follows a link as far as
// the option of package filesystem lets a caller.
func WorkingDirs(dirs ...string) Option {
	return func(n *Node) (err error) {
		n.limits, err = policy.New(dirs)
		return err
	}
}

// UnsafeWorkingDirs is WorkingDirs that also accepts roots of drives and folders of Windows, programs and users.
func UnsafeWorkingDirs(dirs ...string) Option {
	return func(n *Node) (err error) {
		n.limits, err = policy.NewUnsafe(dirs)
		return err
	}
}

// SMBHost is the host that creates and removes mappings, such as that of smbapi.NewOn. It knows what
// Windows does not list: the users of mappings, and which removals wait. It must implement
// smbapi.Extended; otherwise the option has no effect. New needs no such option: it uses that of
// smbapi.New.
func SMBHost(host smbapi.HostAPI) Option {
	return func(n *Node) error {
		n.smb, _ = host.(smbapi.Extended)
		return nil
	}
}

// New returns the machine this program runs on.
func New(options ...Option) (*Node, error) {
	return build(&Node{m: local.Machine(), disks: diskapi.New(), lost: lostvolume.ThisMachine}, append([]Option{SMBHost(smbapi.New()), VolumeHost(volumeapi.New())}, options...))
}

// NewOn returns a given machine. Outside this module that is an emulated one: NewOn(emulated) with
// a *winsim.Node.
func NewOn(m win.Machine, options ...Option) (*Node, error) {
	return build(&Node{m: m, disks: diskapi.NewOn(m), lost: lostvolume.NewFinder()}, append([]Option{VolumeHost(volumeapi.NewOn(m))}, options...))
}

func build(n *Node, options []Option) (*Node, error) {
	n.turns = &tasks.Locks[struct{}]{Limit: atOnce}
	n.searches = shared.New[scope, search](findGather, findMaxWait)
	n.began = n.m.Elapsed()
	for _, option := range options {
		if err := option(n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// Part is something that a description has only if the caller asks for it.
type Part int

// The parts.
const (
	// Links are those in the working directories. They take longer than all else.
	Links Part = iota + 1
	// Shares are the global mappings of SMB shares.
	Shares
	// ShareAnswers are Shares, with whether each of them answers. It opens every share, as a pod
	// does, so Windows connects mappings again that it has disconnected. After one that its server does not answer, or
	// refuses the account of, the others of the server are not opened: they would lock the account.
	ShareAnswers
	// Sessions are those of the iSCSI initiator.
	Sessions
)

// Description is the storage of a node at one moment. What is unknown is nil or empty, and a problem
// says why.
type Description struct {
	Disks   []Disk   // by number, those without one last
	Volumes []Volume // that have a name, by disk and partition
	// Links are those that lead to a volume, nowhere, or into a share that is not mapped, by path.
	Links         []Link
	LinksSearched bool // they were asked for, and there are working directories
	Shares        []Share
	SharesListed  bool // they were asked for, and Windows listed them
	// Sessions are those of the iSCSI initiator, by target.
	Sessions       []Session
	SessionsListed bool // they were asked for, and Windows listed them
	// Pods are those that have a log directory, with Links.
	Pods []Pod
	// VolumesFailed, LinksFailed and SharesFailed mean that a fault keeps some of them out of the
	// description. A problem says why.
	VolumesFailed, LinksFailed, SharesFailed bool
	// Problems say what could not be found out about the node as a whole, each with the reason.
	Problems []Problem
}

// Disk is a disk that is present.
type Disk struct {
	// Number is the N of \\.\PhysicalDriveN. It is nil if the disk does not report it.
	Number *uint32
	// Path is the device interface, such as
	// \\?\scsi#disk&ven_nvme&prod_msft_nvme_accele#6&ca10229&0&000001#{53f56307-...}. Many name a slot,
	// and the next disk in it has the same.
	Path string
	// Bus is how it is attached: nvme, scsi, sas, iscsi, fibre, sata, usb, virtual, file-backed and
	// so on, or a number; see STORAGE_BUS_TYPE.
	Bus string
	// Model is vendor and product, such as "Msft Virtual Disk".
	Model string
	// Serial and Page83 are what package disk returns as SerialNumber and Page83.
	Serial, Page83 string
	// Location is what package disk returns as location. It is nil for a disk that has none.
	Location *diskapi.DiskLocation
	// SCSI is the SCSI address. The drivers of NVMe disks make one up.
	SCSI *SCSIAddress
	// NamespaceID is the NVMe namespace, where a rule for reading it is known: for Azure's remote
	// disks. 0 means that there is none.
	NamespaceID uint32
	// EUI64 and NGUID identify an NVMe namespace: 16 and 32 hexadecimal digits in lower case. The
	// metadata server of Google Compute Engine reports the EUI-64 as a decimal number, under the name
	// nvmeNamespaceIdentifier.
	EUI64, NGUID string
	Size         *int64 // bytes
	Online       *bool
	// OfflineReason says why a disk is not online, see OfflinePolicy. Empty if it is online.
	OfflineReason string
	ReadOnly      *bool
	System        bool   // Windows or its boot files are on it
	Style         string // of the partition table: GPT, MBR or RAW
	// Health is what Windows says of the disk: volumeapi.DiskHealthy and so on, with a reason; empty if unknown.
	Health, HealthReason string
	TableID              string // of the partition table: a GUID, or the eight digits of an MBR signature
	Partitions           []Partition
	Problems             []Problem
}

// Why a disk is offline. For a disk that Windows keeps offline because another one has the same id,
// such as a restored snapshot beside its original, the reason is "collision with disk 3", with the
// number of that disk.
const (
	OfflinePolicy  = "policy"  // the SAN policy of the machine keeps new disks on this bus offline
	OfflineUnknown = "unknown" // an operator or a driver may have taken it offline
)

// SCSIAddress is where a disk is attached, as its driver says.
type SCSIAddress struct {
	Port, Path, Target, LUN uint8
}

// String is the address as port:path:target:LUN.
func (a SCSIAddress) String() string {
	return fmt.Sprintf("%d:%d:%d:%d", a.Port, a.Path, a.Target, a.LUN)
}

// Partition is a part of a disk.
type Partition struct {
	Number       uint32
	Offset, Size int64
	// Type is data, efi, reserved, recovery, dynamic, extended, or the GUID or number of another type.
	Type     string
	ID       string // the GUID of a GPT partition
	ReadOnly bool   // by its own attribute; its disk may be read-only as well
	VolumeID string // empty if no volume is exactly this partition
}

// State is what is known of a volume's file system.
type State string

// The states. The words are those on the wire.
const (
	Unknown   State = ""
	Formatted State = "formatted"
	Raw       State = "RAW"
	Locked    State = "locked" // by BitLocker
	NotReady  State = "offline"
)

// RootAccessDefault is the root access of a volume that Windows has formatted and that has not been
// changed since.
const RootAccessDefault = "default"

// Volume is a volume that has a name.
type Volume struct {
	ID          string // \\?\Volume{GUID}\
	State       State
	FileSystem  string
	Label       string
	ClusterSize uint32 // bytes, of NTFS; 0 if unknown
	// RootAccess says who has access to the root directory of an NTFS or ReFS volume:
	// RootAccessDefault, volumeapi.UsersModify, or the access list in SDDL.
	RootAccess  string
	Total, Used *int64
	ReadOnly    *bool // by its disks or its partition; nil if unknown
	Dirty       *bool // the dirty bit; nil if unknown
	// Damage is what the file system has noted about itself. DescribeVolumes does not ask.
	Damage     volumeapi.Damage
	MountPaths []string
	// MountPathsListed means that MountPaths are all. Otherwise a problem says why not.
	MountPathsListed bool
	Disks            []uint32
	Partition        uint32 // 0 if it is not exactly one
	Problems         []Problem
}

// Link is a mounted folder or a link in a working directory.
type Link struct {
	Path     string
	VolumeID string // that it leads to, or would
	// Stale says why it leads nowhere: its volume is not there, or Windows answers that its target is not (2 or 3).
	Stale string
	// Problem says why it is not known where it leads. No answer does not mean that the target is gone.
	Problem *Problem
	// Target is the path that it leads to, if that does not exist, does not answer, or is outside the working
	// directories, where nothing is looked at.
	Target string
	// Share is the share that it leads into, if that is not mapped. Then Stale is empty:
	// the server may admit the account of the node.
	Share string
}

// Session is a session of the iSCSI initiator, or a persistent login that has none.
type Session struct {
	Target      string
	Connections uint32   // 0 while Windows tries to connect again
	Disks       []uint32 // numbers
	Persistent  bool     // Windows logs in again after a restart
	// Portals are where its connections lead. Without connections they are those of the target or the login, as far as
	// Windows knows them.
	Portals  []string
	Problems []Problem
}

// Share is a global mapping of an SMB share.
type Share struct {
	Remote string // \\server\share
	// Status is what Windows last knew of the connection: ok, paused, disconnected, network error,
	// connecting, reconnecting, unavailable, or a number. It stays ok when the server is gone or the
	// password changed.
	Status string
	// User is for whom the mapping was created; empty means guest. Windows does not report it, so it is
	// nil if another process created the mapping, or this one before it restarted.
	User *string
	// Private reports whether the mapping requires encryption. It is nil if Windows does not report and
	// another process created it.
	Private *bool
	// Answers reports whether the share can be opened with the mapping. It is nil without
	// ShareAnswers, and if the server does not answer in time. Unless it is true, a problem says why.
	Answers *bool
	// Changes is another number when this process has made the mapping again, or has found that it works.
	Changes uint64
	// Links are the paths of links that lead into the share. With LinksSearched they are
	// those in the working directories, otherwise those that this process has made.
	Links []string
	// RemovalWaits reports whether a driver has asked to remove the mapping, which goes with the last
	// of the links. It is nil if it is unknown, see SMBHost.
	RemovalWaits *bool
	Problems     []Problem
}
