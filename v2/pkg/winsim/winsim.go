// Package winsim emulates a Windows storage node, for tests of CSI drivers on any system. A Node replaces the machine
// below the host logic, so tests exercise the code that runs on Windows nodes, not a stand-in. To start:
//
//	node, err := winsim.New(winsim.Default())
//	if err != nil { ... }
//	fs, err := filesystem.New(node.Filesystem())
//
// A Model, in Go or YAML, describes a node; the presets are nodes of common clouds. Package mountertest gives the node to
// the mounter, package serve to clients of the daemon, csi-proxy-sim to drivers in other languages.
//
// Tests arrange and inspect files (WriteFile, Tree), disks (AttachDisk, DiskInfo) and all else (Add, Describe). Disks fail
// and hang (FailDisk, HangDisk), portals and servers go away (SetISCSIPortalDown, ChangeSMBServer), any call fails or
// waits (Inject), and the node restarts (Reboot). These methods act as the storage backend, the administrator or a pod:
// Calls does not count them, and faults do not affect them. Their paths are those that the API takes. With the prefix \\?\
// they can have any name, and begin with a volume, \\?\Volume{guid}\dir.
//
// A Node has a clock of its own, on which waits take no time, and is safe for concurrent use. Storage behaves as Microsoft
// documents it and as published code relies on it; where neither says what Windows does, Storage lets a test choose.
//
// Within v2 it grows compatibly: structures get fields, so name those that you set. What an emulated node does changes
// when more is known of Windows.
package winsim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/bounds"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
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
	seam

	calls  calls
	faults faults
	model  Model // never changes

	diskHost   diskapi.HostAPI
	iscsiHost  iscsiapi.HostAPI
	systemHost systemapi.HostAPI
	volumeHost volumeapi.HostAPI
	smbHost    smbapi.HostAPI // Reboot replaces it
	restarted  chan struct{}  // closed by Reboot, which makes a new one

	objects // the mu of their clock guards them
}

// objects is what a node is made of. Each is a type with its state and the emulated calls that are about it, in files of
// its name, and reaches only those below it, but for disks, which notify volumes. Only intercept.go counts calls and
// applies faults. model*.go builds them of a Model, describe.go describes them as one.
type objects struct {
	files     *files
	initiator *initiator
	volumes   *volumes
	disks     *disks
	network   *network
	services  *services
	firmware  *firmware
	*clock
}

// machine has the calls of all objects. They are neither counted nor fail here: that is what intercept does before.
type machine struct {
	*files
	*initiator
	*volumes
	*disks
	*network
	*services
	*firmware
	*clock
	win.NoBounds
}

var _ win.Machine = machine{}

// read runs a call about an object that returns something: on finds the object, and holds mu meanwhile.
func read[O, S, T any](on func(object O, do func(S) error) error, object O, ask func(S) (T, error)) (result T, err error) {
	err = on(object, func(s S) (err error) {
		result, err = ask(s)
		return err
	})
	return result, err
}

// New creates the node that model describes. An error names the wrong field.
func New(model Model) (*Node, error) {
	built, err := model.validate()
	if err != nil {
		return nil, err
	}
	node := &Node{objects: built, model: model, calls: calls{counts: map[string]int{}}, restarted: make(chan struct{})}
	node.faults.random = rand.New(rand.NewPCG(model.Seed, model.Seed)) //nolint:gosec // faults must be reproducible, not secret
	node.seam = process{Machine: bounds.New(machine{
		built.files, built.initiator, built.volumes, built.disks, built.network, built.services, built.firmware, built.clock, win.NoBounds{},
	}, node.intercept, node.prompt)}
	node.diskHost, node.iscsiHost, node.volumeHost = diskapi.NewOn(node), iscsiapi.NewOn(node), volumeapi.NewOn(node)
	node.smbHost, node.systemHost = smbapi.NewOn(node), systemapi.NewOn(node)
	if err := node.start(model.Files); err != nil {
		return nil, err
	}
	node.files.started = true
	return node, nil
}

// start brings a new node into its initial state, and adds its files.
func (n *Node) start(files []File) error {
	n.boot()
	n.initiator.boot()
	n.volumes.announceAll()
	for i, f := range files {
		if err := n.Create(f); err != nil {
			problem := err.Error()
			if path := strings.TrimPrefix(f.Path, `\\?\`); isDrivePath(path) && n.volumes.letters[winpath.Fold(path[:1])] == nil {
				problem = fmt.Sprintf("the node has no drive %s:", winpath.Fold(path[:1]))
			}
			return &ModelError{Field: field("files", i, "path"), Problem: problem}
		}
	}
	n.services.booted = n.now()
	return nil
}

// Add adds the services, iSCSI targets and SMB servers of a model, up to the first that is wrong. Windows sees targets at
// the next discovery.
func (n *Node) Add(m Model) error {
	defer n.lock()()
	for _, s := range m.SMBServers {
		for _, name := range s.names() {
			if n.network.byName[winpath.Fold(name)] != nil {
				return winerr.New(winerr.Exists, "add SMB server", name, "the name is in use")
			}
		}
		if err := n.network.add(s); err != nil {
			return winerr.New(winerr.Invalid, "add SMB server", s.Name, "%w", err)
		}
	}
	for _, t := range m.ISCSI.Targets {
		if err := n.initiator.addTarget(t); err != nil {
			return winerr.New(winerr.Invalid, "add iSCSI target", t.IQN, "%w", err)
		}
	}
	for _, s := range m.Services {
		if err := n.services.add(s); err != nil {
			return winerr.New(winerr.Invalid, "add service", s.Name, "%w", err)
		}
	}
	return nil
}

// Filesystem returns the host of the filesystem group, for filesystem.New.
func (n *Node) Filesystem() fsapi.HostAPI { return fsapi.NewOn(n) }

// Disk returns the host of the disk group, for disk.New: always the same one, as on a real machine.
func (n *Node) Disk() diskapi.HostAPI { return n.diskHost }

// System returns the host of the system group, for system.New: always the same one.
func (n *Node) System() systemapi.HostAPI { return n.systemHost }

// Volume returns the host of the volume group, for volume.New: always the same one.
func (n *Node) Volume() volumeapi.HostAPI { return n.volumeHost }

// ISCSI returns the host of the iSCSI group, for iscsi.New: the same one until Reboot.
func (n *Node) ISCSI() iscsiapi.HostAPI {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.iscsiHost
}

// SMB returns the host of the SMB group, for smb.New: the same one until Reboot.
func (n *Node) SMB() smbapi.HostAPI {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.smbHost
}

// boot brings disks and services into their initial state, and volumes up.
func (n *Node) boot() {
	n.disks.boot()
	n.volumes.boot()
	for _, s := range n.services.all {
		n.services.leavePending(s)
	}
}
