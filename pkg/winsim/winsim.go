// Package winsim is an emulated Windows storage node for tests: of this project,
// and of CSI drivers that have no Windows machine at hand.
//
// A Node stands where the real machine stands, below the host logic. What a test
// exercises through it is the code that runs on Windows nodes, not a stand-in for
// that code. Five lines are enough:
//
//	node, err := winsim.New(winsim.Default())
//	if err != nil { ... }
//	fs, err := filesystem.New(node.Filesystem())
//	if err != nil { ... }
//	_, err = fs.Mkdir(ctx, &filesystem.MkdirRequest{Path: `C:\var\lib\kubelet\pods\1`})
//
// The child package serve puts the whole gRPC API of a node on Unix sockets, so that
// a driver's own client code can be tested on any OS; the program csi-proxy-sim does
// the same for drivers in other languages.
//
// What a node contains is said by a Model, in Go or in YAML: disks with their partitions,
// volumes and files, how slow and moody the machine is (Storage), its services and its
// firmware, and the SMB servers that it can reach. There are presets for what clouds show. A node counts the calls made to it (Calls), fails or delays them on
// demand (Inject), and lets a test look at and change its files directly (WriteFile,
// Symlink, MountFolder and so on), as well as its disks (AttachDisk, GrowDisk, DiskInfo,
// DiskFingerprint and so on), its iSCSI world (ISCSISessions, SetISCSIPortalDown and so on)
// and its services (ServiceInfo, SetServiceState, AddService). A Node is safe for concurrent
// use.
//
// Files have all the names that NTFS has for them, 8.3 aliases and streams included, and can
// change behind an operation's back (Swap). What the operation really touched is reported
// (Observe).
//
// Time is the node's own: a wait of a minute, for a volume that arrives late or a format
// that takes long, is over at once (Sleep, Now), unless the model asks for real time.
//
// A node can be saved and loaded (Save, Load), or kept in a file all the time (Open), so that a
// test can end the process that serves it at any moment and see what a retry makes of it.
//
// Its storage behaves as Microsoft documents it and as published code relies on. Where
// neither says what Windows does, the model lets a test choose.
//
// The package never touches the machine it runs on, unless it is asked to show the files of
// a node in a real directory (Mirror, MirrorDrives). It imports nothing of Windows.
package winsim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	diskapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/disk/hostapi"
	fsapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem/hostapi"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// Node is one emulated Windows machine.
type Node struct {
	calls   calls
	faults  faults
	model   Model         // that it was made from; never changes, and neither do
	storage Storage       // its part that says how storage behaves,
	digest  func() string // and what tells it from others

	diskHost   diskapi.HostAPI
	iscsiHost  iscsiapi.HostAPI
	systemHost systemapi.HostAPI
	volumeHost volumeapi.HostAPI
	smbHost    smbapi.HostAPI // until Reboot, which makes a new one

	mu    mutex // guards everything below
	clock clock
	inventory
	unseen     []*disk                     // attached, but not found yet
	detached   map[uint32]*disk            // by the number they had
	departures uint32                      // how often a disk was detached
	persisted  map[SCSI]win.DiskAttributes // what was set, by address
	guids      uint32                      // how many were made
	outOfDate  int                         // formats that the storage service still refuses
	iscsi      initiator

	openDirectories int
	mountedFolders  []mountedFolder
	observers       []func(Touch)
	mirror          *mirror // nil without real directories
}

var _ win.Machine = (*Node)(nil)

// New creates a node as model describes it. The error names the field that is
// wrong.
func New(model Model) (*Node, error) {
	inventory, err := model.validate()
	if err != nil {
		return nil, err
	}
	initiator, problem := model.ISCSI.build()
	if problem != nil {
		return nil, problem.in("iscsi")
	}
	node := &Node{
		model:     model,
		digest:    sync.OnceValue(model.digest),
		storage:   model.Storage,
		clock:     clock{real: model.RealTime},
		inventory: inventory,
		detached:  map[uint32]*disk{},
		persisted: map[SCSI]win.DiskAttributes{},
		outOfDate: model.Storage.ServiceOutOfDate,
		iscsi:     initiator,
	}
	node.faults.random = rand.New(rand.NewPCG(model.Seed, model.Seed)) //nolint:gosec // faults must be reproducible, not secret
	node.diskHost, node.iscsiHost, node.volumeHost = diskapi.NewOn(node), iscsiapi.NewOn(node), volumeapi.NewOn(node)
	node.smbHost, node.systemHost = smbapi.NewOn(node), systemapi.NewOn(node)
	node.boot()
	node.bootISCSI()
	for i, f := range model.Files {
		if err := node.create(f); err != nil {
			problem := err.Error()
			if path := strings.TrimPrefix(f.Path, `\\?\`); isDrivePath(path) && node.letters[winpath.Fold(path[:1])] == nil {
				problem = fmt.Sprintf("the node has no drive %s:", winpath.Fold(path[:1]))
			}
			return nil, &ModelError{Field: field("files", i, "path"), Problem: problem}
		}
	}
	return node, nil
}

// Filesystem returns the host of the filesystem group on this node, for
// filesystem.New.
func (n *Node) Filesystem() fsapi.HostAPI { return fsapi.NewOn(n) }

// Disk returns the host of the disk group on this node, for disk.New. It is always the
// same one: its calls wait for each other as those on a real machine do.
func (n *Node) Disk() diskapi.HostAPI { return n.diskHost }

// System returns the host of the system group on this node, for system.New; the same one
// always, like Disk.
func (n *Node) System() systemapi.HostAPI { return n.systemHost }

// Volume returns the host of the volume group on this node, for volume.New; the same one
// always, like Disk. One with other options is made by the package's own NewOn.
func (n *Node) Volume() volumeapi.HostAPI { return n.volumeHost }

// ISCSI returns the host of the iSCSI group on this node, for iscsi.New; the same one until
// Reboot, like Disk.
func (n *Node) ISCSI() iscsiapi.HostAPI {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.iscsiHost
}

// SMB returns the host of the SMB group on this node, for smb.New; the same one until Reboot,
// like Disk.
func (n *Node) SMB() smbapi.HostAPI {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.smbHost
}

// boot brings the disks into the state in which they arrive, their volumes up, and the
// services out of their pending states.
func (n *Node) boot() {
	for _, d := range n.disks {
		d.attributes = n.arrivalState(d)
		d.offlineAgain = n.storage.OfflineAgain
	}
	for _, v := range n.volumes {
		if !slices.ContainsFunc(v.extents, func(e extent) bool { return !n.online(e.disk) }) {
			v.present, v.inServiceCache = true, true
		}
	}
	for _, s := range n.services.all {
		n.leavePending(s)
	}
}

// newGUID makes up a GUID that no other object has.
func (n *Node) newGUID() win.GUID {
	n.guids++
	return win.MustGUID(fmt.Sprintf("a%07x-0000-4000-8000-000000000000", n.guids))
}
