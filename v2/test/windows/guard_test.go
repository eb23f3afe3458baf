package windows_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskid"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// reads are the methods of the seam that change nothing, or nothing that anyone could miss.
var reads = strings.Fields(`FileInfo TargetInfo ReparsePoint Location PathSpace OpenDirectory Open ListDirectory Next ChangedAt
	DiskDevices DeviceNumber DeviceDescriptor DeviceIdentifiers DeviceLocation SCSIAddress DiskGeometry DiskAttributes
	SANPolicy DriveLayout UpdateDisk UpdateDriveSize ReadDevice StorageAdapters RescanAdapter
	VolumeIDs VolumeExtents FileSystem VolumeSpace NTFSVolumeData ReFSVolumeData VolumeDirty VolumeHealth DiskHealth FlushVolume VolumeOfDrive VolumePaths SystemVolumes
	RootEntries RootSecurity RefreshStorageCache
	ReportSendTargetPortals RefreshSendTargetPortal ReportTargets ReportTargetPortals Sessions DevicesForSession
	PersistentLogins FirmwareTable BIOSSerialNumber Uptime ServiceConfig ServiceStatus ActiveDependents
	SMBMapping SMBMappings`)

// guard passes on what changes a disk, a volume, a file, a mapping, a portal or a service only if it is one of
// ours, so that no mistake of a question, of the suite or of the library can reach another one.
func (n *node) guard(m win.Machine) win.Machine {
	return win.Intercept(m, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		if slices.Contains(reads, c.Method) {
			return next(ctx)
		}
		if err := n.allow(ctx, m, c); err != nil {
			return fmt.Errorf("%s: %w", c.Method, err)
		}
		return next(ctx)
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
	case win.VolumeID: // ExtendVolume, OnlineVolume, LockFormat, Format, FormatLegacy, SetVolumeLabel, SetRootSecurity
		return n.allowVolume(ctx, m, about)
	case win.SMBMappingRequest: // CreateSMBMapping
		return n.allowMapping(ctx, m, about.Remote)
	case win.TargetPortal: // AddSendTargetPortal
		return n.allowPortal(about)
	case win.SendTargetPortal: // RemoveSendTargetPortal
		return n.allowPortal(about.Portal)
	case win.Path: // CreateDirectory
		return n.allowDirectory(about.String())
	case string:
		switch c.Method {
		case "RemoveSMBMapping":
			return n.allowRemoval(about)
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
	return n.allowNumber(ctx, m, at.Number)
}

// allowNumber checks that a disk is one of ours. Even then it must not carry Windows.
func (n *node) allowNumber(ctx context.Context, m win.Machine, number uint32) error {
	if _, err := n.disk(number); err != nil {
		return err
	}
	return checkNotSystem(ctx, m, number)
}

// checkNotSystem fails if a disk carries Windows, or if that is unknown.
func checkNotSystem(ctx context.Context, m win.Machine, number uint32) error {
	system, err := diskid.System(ctx, m)
	if err != nil {
		return fmt.Errorf("the disks of Windows: %w", err)
	}
	if slices.Contains(system, number) {
		return fmt.Errorf("disk %d carries Windows: %w", number, winerr.AccessDenied)
	}
	return nil
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
		if err := n.allowNumber(ctx, m, extent.Disk); err != nil {
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

// allowRemoval checks that this run has made a mapping: others belong to users of the machine.
func (n *node) allowRemoval(remote string) error {
	if !n.mapped[remote] {
		return fmt.Errorf("%s was not mapped by this run: %w", remote, winerr.AccessDenied)
	}
	return nil
}

// allowMapping notes a mapping that is about to be made. One that is there belongs to a user of the machine, and is
// not removed. If the machine does not say what is there, nothing is made.
func (n *node) allowMapping(ctx context.Context, m win.Machine, remote string) error {
	if err := n.isOurShare(remote); err != nil {
		return err
	}
	_, err := m.SMBMapping(ctx, remote)
	if errors.Is(err, fs.ErrNotExist) {
		n.mapped[remote] = true
		return nil
	}
	return err
}

// noPortal is discard, where no target listens.
var noPortal = win.TargetPortal{Address: "127.0.0.1", Port: 9}

func (n *node) allowPortal(portal win.TargetPortal) error {
	if portal.String() == noPortal.String() || n.portal != nil && portal.String() == n.portal.String() {
		return nil
	}
	return fmt.Errorf("%s is not a portal that was named: %w", portal, winerr.AccessDenied)
}

// TestGuard: nothing that was not named can be changed, also by the library.
func TestGuard(t *testing.T) {
	n, err := emulated() // never the machine itself: if the guard failed, it would be lost
	require.NoError(t, err)
	ctx, m := t.Context(), n.machine
	volumes, err := m.SystemVolumes(ctx)
	if err != nil || len(volumes) == 0 {
		t.Fatalf("the volume of Windows is not known: %v", err)
	}
	system := volumes[0]
	disks, err := diskid.OfVolume(ctx, m, system)
	require.NoError(t, err)
	root, err := m.OpenDirectory(ctx, win.Following(n.root[:len(`C:\`)]))
	require.NoError(t, err)
	defer root.Close()
	other := win.TargetPortal{Address: "10.9.9.9", Port: 3260}
	changes := func(number uint32) map[string]error {
		disk := win.PhysicalDrive(number)
		return map[string]error{
			"SetDiskAttributes": m.SetDiskAttributes(ctx, disk, win.DiskAttributes{}, win.DiskAttributes{}),
			"CreateDisk":        m.CreateDisk(ctx, disk, win.NewGUID()),
			"SetDriveLayout":    m.SetDriveLayout(ctx, disk, win.DriveLayout{}),
			"GrowPartition":     m.GrowPartition(ctx, disk, 1, 1),
			"ResizePartition":   m.ResizePartition(ctx, number, win.NewGUID(), 1),
			"Format":            m.Format(ctx, system, win.FormatOptions{}),
			"SetVolumeLabel":    m.SetVolumeLabel(ctx, system, "x"),
			"SetRootSecurity":   m.SetRootSecurity(ctx, system, "D:P"),
		}
	}
	wantDenied(t, changes(disks[0]))
	wantDenied(t, map[string]error{
		"CreateDirectory":        root.CreateDirectory(ctx, "csi-proxy-verify-guard"),
		"Remove":                 root.Remove(ctx, "csi-proxy-verify-guard"),
		"SetMountPoint":          root.SetMountPoint(ctx, "csi-proxy-verify-guard", system),
		"StopService":            m.StopService(ctx, "kubelet"),
		"StartService":           m.StartService(ctx, "kubelet"),
		"CreateSMBMapping":       m.CreateSMBMapping(ctx, win.SMBMappingRequest{Remote: `\\elsewhere\share`}),
		"RemoveSMBMapping":       m.RemoveSMBMapping(ctx, n.share.remote, true),
		"AddSendTargetPortal":    m.AddSendTargetPortal(ctx, other),
		"RemoveSendTargetPortal": m.RemoveSendTargetPortal(ctx, win.SendTargetPortal{Portal: other}),

		"SetInitiatorCHAPSharedSecret": m.SetInitiatorCHAPSharedSecret(ctx, win.NewSecret("0123456789ab")),
	})
	// A disk that is given back is foreign again, and that of Windows is never ours, also if it was named by mistake.
	var number uint32
	t.Run("while it is ours", func(t *testing.T) {
		d := n.scratch(t, 512)
		number = d.Number()
		require.NoError(t, m.CreateDisk(t.Context(), device(d), win.NewGUID()))
		n.own = append(n.own, &emulatedDisk{number: disks[0], attached: true})
		wantDenied(t, changes(disks[0]))
	})
	if _, err := n.disk(number); !errors.Is(err, winerr.AccessDenied) {
		t.Errorf("a disk of a test that has ended: %v, want access denied", err)
	}
}

func wantDenied(t *testing.T, calls map[string]error) {
	t.Helper()
	for name, err := range calls {
		if !errors.Is(err, winerr.AccessDenied) || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v, want access denied by the guard", name, err)
		}
	}
}

// Control codes for which the product has no use.
const (
	lockVolume      = 0x90018 // FSCTL_LOCK_VOLUME
	unlockVolume    = 0x9001C // FSCTL_UNLOCK_VOLUME
	markVolumeDirty = 0x90030 // FSCTL_MARK_VOLUME_DIRTY
)

// control sends control codes to a volume of ours, on one handle.
func (n *node) control(ctx context.Context, id win.VolumeID, codes ...uint32) []error {
	if err := n.allowVolume(ctx, n.machine, id); err != nil {
		return slices.Repeat([]error{err}, len(codes))
	}
	return n.controlDevice(id.Device(), codes...)
}
