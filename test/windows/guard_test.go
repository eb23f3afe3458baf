package windows_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// reads are the methods of the seam that change nothing, or nothing that anyone could miss.
var reads = strings.Fields(`FileInfo TargetInfo ReparsePoint Location PathSpace OpenDirectory Open ListDirectory ChangedAt
	DiskDevices DeviceNumber DeviceDescriptor DeviceIdentifiers DeviceLocation SCSIAddress DiskGeometry DiskAttributes
	SANPolicy DriveLayout UpdateDisk UpdateDriveSize ReadDevice StorageAdapters RescanAdapter
	VolumeIDs VolumeExtents FileSystem VolumeSpace NTFSVolumeData ReFSVolumeData VolumeDirty VolumeHealth DiskHealth FlushVolume VolumeOfDrive VolumePaths SystemVolumes
	RootEntries RootSecurity RefreshStorageCache
	ReportSendTargetPortals RefreshSendTargetPortal ReportTargets ReportTargetPortals Sessions DevicesForSession
	PersistentLogins FirmwareTable BIOSSerialNumber Uptime ServiceConfig ServiceStatus ActiveDependents
	SMBMapping SMBMappings`)

// guard passes on what changes a disk, a volume, a file, a mapping, a portal or a service only if it is one of
// ours, so that no mistake of a question, of the suite or of the library can reach another one. What would survive
// the process is announced in the journal first. After stop nothing is changed any more.
func (n *node) guard(m win.Machine) win.Machine {
	return win.Intercept(m, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		if slices.Contains(reads, c.Method) {
			return next(ctx)
		}
		if n.stopped.Load() {
			return errors.New("the run was interrupted")
		}
		if err := n.allow(ctx, m, c); err != nil {
			return fmt.Errorf("%s: %w", c.Method, err)
		}
		err := next(ctx)
		if err == nil {
			n.forget(c)
		}
		return err
	})
}

// allow fails unless a call changes what is ours.
func (n *node) allow(ctx context.Context, m win.Machine, c *win.Call) error {
	args := c.Args()
	if len(args) == 0 {
		args = []win.Arg{{}}
	}
	switch about := args[0].Value.(type) {
	case win.Device: // SetDiskAttributes, SetDriveLayout, CreateDisk, GrowPartition
		return n.allowDisk(ctx, m, about)
	case uint32: // ResizePartition
		return n.allowDisk(ctx, m, win.PhysicalDrive(about))
	case win.VolumeID: // ExtendVolume, OnlineVolume, Format, FormatLegacy, RepairVolume, SetVolumeLabel, SetRootSecurity
		return n.allowVolume(ctx, m, about)
	case win.SMBMappingRequest: // CreateSMBMapping
		return n.allowMapping(ctx, m, about.Remote)
	case win.TargetPortal: // AddSendTargetPortal
		return n.allowPortal(ctx, m, about)
	case win.SendTargetPortal: // RemoveSendTargetPortal
		return n.isOurPortal(about.Portal)
	case win.Path: // CreateDirectory
		return n.allowDirectory(about.String())
	case string:
		switch c.Method {
		case "RemoveSMBMapping":
			return n.isOurMapping(about)
		case "StartService", "StopService":
			if !strings.HasPrefix(about, servicePrefix) {
				return fmt.Errorf("%s is not a service that this run may change: %w", about, winerr.AccessDenied)
			}
			return nil
		case "CreateDirectory":
			return n.allowDirectory(c.Entry())
		case "CreateDirectoryLink", "SetMountPoint", "DeleteMountPoint", "Remove", "RemoveLink":
			return n.allowPath(c.Entry())
		}
	}
	// Login, Logout, RemovePersistentTarget, SetInitiatorCHAPSharedSecret, and what the seam gets later.
	return fmt.Errorf("no question may do that: %w", winerr.AccessDenied)
}

// allowDisk checks that a device is a disk of ours, or one that no machine has.
func (n *node) allowDisk(ctx context.Context, m win.Machine, d win.Device) error {
	if d == win.PhysicalDrive(missingDisk) {
		return nil
	}
	at, err := m.DeviceNumber(ctx, d)
	if err != nil {
		return err
	}
	if at.Type != win.DeviceTypeDisk {
		return fmt.Errorf("%s is not a disk: %w", d, winerr.AccessDenied)
	}
	_, err = n.disk(at.Number)
	return err
}

// allowVolume checks that a volume is on disks of ours, or is one that no machine has.
func (n *node) allowVolume(ctx context.Context, m win.Machine, id win.VolumeID) error {
	if id == missingVolume {
		return nil
	}
	extents, err := m.VolumeExtents(ctx, id)
	if err != nil {
		return err
	}
	if len(extents) == 0 {
		return fmt.Errorf("%s is on no disk: %w", id, winerr.AccessDenied)
	}
	for _, extent := range extents {
		if _, err := n.disk(extent.Disk); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) allowPath(path string) error {
	if !winpath.Contains(n.root, path) {
		return fmt.Errorf("%s is not below %s: %w", path, n.root, winerr.AccessDenied)
	}
	return nil
}

// allowDirectory also allows the directories above the root: they are there, so that none is made.
func (n *node) allowDirectory(path string) error {
	if winpath.Contains(path, n.root) {
		return nil
	}
	return n.allowPath(path)
}

// noServer is a server that does not exist. A name server that answers for it leads to one that gets no password
// of the operator.
const noServer = `\\no-such-server-49.invalid`

// isOurShare checks that a share is of the server that the operator has named.
func (n *node) isOurShare(remote string) error {
	if strings.HasPrefix(remote, noServer+`\`) {
		return nil
	}
	if n.share == nil || !strings.HasPrefix(winpath.Fold(remote), winpath.Fold(n.share.server()+`\`)) {
		return fmt.Errorf("%s is not of a server that was named: %w", remote, winerr.AccessDenied)
	}
	return nil
}

// isOurMapping checks that a mapping was announced: others belong to users of the machine.
func (n *node) isOurMapping(remote string) error {
	if n.journal != nil && !slices.Contains(n.journal.find(mappingKind), entry{Kind: mappingKind, Name: remote}) {
		return fmt.Errorf("%s was not mapped by this run: %w", remote, winerr.AccessDenied)
	}
	return n.isOurShare(remote)
}

// allowMapping announces a mapping. One that is there belongs to a user of the machine: it is not removed after the
// run, and so not announced. If the machine does not say what is there, nothing is made.
func (n *node) allowMapping(ctx context.Context, m win.Machine, remote string) error {
	if err := n.isOurShare(remote); err != nil {
		return err
	}
	_, err := m.SMBMapping(ctx, remote)
	if errors.Is(err, fs.ErrNotExist) {
		return n.journal.add(entry{Kind: mappingKind, Name: remote})
	}
	return err
}

// noPortal is discard, where no target listens.
var noPortal = win.TargetPortal{Address: "127.0.0.1", Port: 9}

func (n *node) isOurPortal(portal win.TargetPortal) error {
	if portal.String() == noPortal.String() || n.portal != nil && portal.String() == n.portal.String() {
		return nil
	}
	return fmt.Errorf("%s is not a portal that was named: %w", portal, winerr.AccessDenied)
}

// allowPortal announces a portal, as allowMapping does a mapping.
func (n *node) allowPortal(ctx context.Context, m win.Machine, portal win.TargetPortal) error {
	if err := n.isOurPortal(portal); err != nil {
		return err
	}
	known, err := m.ReportSendTargetPortals(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(known, func(k win.SendTargetPortal) bool { return k.Portal.String() == portal.String() }) {
		return nil
	}
	return n.journal.add(entry{Kind: portalKind, Name: portal.String()})
}

// forget takes out of the journal what a call has removed: what gets its name afterwards belongs to another.
func (n *node) forget(c *win.Call) {
	switch c.Method {
	case "RemoveSMBMapping":
		n.journal.remove(entry{Kind: mappingKind, Name: c.Args()[0].Value.(string)})
	case "RemoveSendTargetPortal":
		n.journal.remove(entry{Kind: portalKind, Name: c.Args()[0].Value.(win.SendTargetPortal).Portal.String()})
	}
}
