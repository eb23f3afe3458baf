package win

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Kind is a kind of calls that hang for the same reason. It completes "a call to".
type Kind string

// The kinds. All calls can hang: those that open a device, a volume or a file, ask Windows about them, or reach for a
// target, and those that another process answers.
const (
	ReachFile   Kind = "reach a file" // the volume it is on does not answer
	ReachServer Kind = "reach a server"
	AskMounts   Kind = "ask the mount manager" // it does one thing at a time, and waits for volumes
	ListDevices Kind = "list devices"          // Windows is adding or removing one
	AskDriver   Kind = "ask a driver"          // the same, and the driver is stuck
	AskDisk     Kind = "ask a disk"            // the driver may remember the answer, or ask the disk
	ReadDisk    Kind = "read a disk or volume"
	ChangeDisk  Kind = "change a disk"
	ReachVolume Kind = "reach a volume"
	Flush       Kind = "flush a volume" // it takes as long as there is something to write
	FormatDisk  Kind = "format a volume"
	ScanAdapter Kind = "scan an adapter"
	AskStorage  Kind = "ask the storage service" // it is busy with other disks

	AskInitiator   Kind = "ask the iSCSI initiator" // it does one thing at a time
	AskPortal      Kind = "ask an iSCSI portal"     // the server does not answer
	LoginTarget    Kind = "log in to an iSCSI target"
	LogoutTarget   Kind = "log out of an iSCSI target" // programs have its disks open
	AskServices    Kind = "ask the service manager"    // it is busy with the list of services
	ControlService Kind = "control a service"          // and it waits for the service
	MapShare       Kind = "map a share"                // the server does not answer
)

// method is what is known of the calls of a method.
type method struct {
	kind Kind
	// change says what a call does that changes a disk, a volume or a session: "formatting %s". It is empty for others:
	// questions, and changes of files, of the initiator and of services.
	change string
	// asks means that a call changes nothing at all.
	asks bool
}

// methods says why the calls of each method can hang, and which of them change something that others must not use before
// Windows has answered. Those that take a path, and those of a directory, hang on the file, volume or server.
var methods = map[string]method{
	"FileInfo": {asks: true}, "TargetInfo": {asks: true}, "ReparsePoint": {asks: true}, "Location": {asks: true}, "PathSpace": {asks: true}, "OpenDirectory": {asks: true}, "Open": {asks: true},
	"ListDirectory": {asks: true}, "Next": {asks: true}, "ChangedAt": {asks: true}, "CreateDirectory": {}, "CreateDirectoryLink": {}, "Remove": {}, "ReadFile": {asks: true}, "ReplaceFile": {},
	"SetMountPoint":    {kind: AskMounts, change: "mounting %s"},
	"DeleteMountPoint": {kind: AskMounts, change: Unmounting}, "RemoveLink": {kind: AskMounts},

	"DiskDevices": {kind: ListDevices, asks: true}, "HiddenDiskDevices": {kind: ListDevices, asks: true}, "SANPolicy": {kind: ListDevices, asks: true}, "StorageAdapters": {kind: ListDevices, asks: true},
	"DeviceNumber": {kind: AskDriver, asks: true}, "DeviceDescriptor": {kind: AskDriver, asks: true}, "DeviceLocation": {kind: AskDriver, asks: true},
	"SCSIAddress": {kind: AskDriver, asks: true}, "DiskAttributes": {kind: AskDriver, asks: true}, "VolumeExtents": {kind: AskDriver, asks: true},
	"DeviceIdentifiers": {kind: AskDisk, asks: true}, "DiskGeometry": {kind: AskDisk, asks: true}, "DriveLayout": {kind: AskDisk, asks: true},
	"ReadDevice":        {kind: ReadDisk, asks: true},
	"SetDiskAttributes": {kind: ChangeDisk, change: "changing the state of %s"},
	"TakeUnusedOffline": {kind: ChangeDisk, change: TakingOffline},
	"SetDriveLayout":    {kind: ChangeDisk, change: "partitioning %s"},
	"CreateDisk":        {kind: ChangeDisk, change: "initializing %s"},
	"GrowPartition":     {kind: ChangeDisk, change: "growing a partition of %s"},
	"ResizePartition":   {kind: ChangeDisk, change: "growing a partition of %s"},
	"UpdateDisk":        {kind: ChangeDisk, change: RereadingTable},
	"UpdateDriveSize":   {kind: ChangeDisk, change: "reading the size of %s again"},
	"RescanAdapter":     {kind: ScanAdapter},
	"DiskHealth":        {kind: AskStorage, asks: true}, "VolumeHealth": {kind: AskStorage, asks: true}, "RefreshStorageCache": {kind: AskStorage},

	"VolumeIDs": {kind: AskMounts, asks: true}, "VolumeOfDrive": {kind: AskMounts, asks: true}, "VolumePaths": {kind: AskMounts, asks: true},
	"FileSystem": {kind: ReachVolume, asks: true}, "VolumeSpace": {kind: ReachVolume, asks: true}, "NTFSVolumeData": {kind: ReachVolume, asks: true},
	"ReFSVolumeData": {kind: ReachVolume, asks: true}, "VolumeDirty": {kind: ReachVolume, asks: true}, "RootEntries": {kind: ReachVolume, asks: true},
	"RootSecurity": {kind: ReachVolume, asks: true}, "SystemVolumes": {kind: ReachFile, asks: true},
	"ExtendVolume":    {kind: ReachVolume, change: "growing %s"},
	"OnlineVolume":    {kind: ReachVolume, change: "bringing %s online"},
	"SetVolumeLabel":  {kind: ReachVolume, change: "naming %s"},
	"SetRootSecurity": {kind: ReachVolume, change: "setting the access to %s"},
	"FlushVolume":     {kind: Flush, change: "writing the cache of %s"},
	"LockFormat":      {kind: FormatDisk},
	"Format":          {kind: FormatDisk, change: "formatting %s"}, "FormatLegacy": {kind: FormatDisk, change: "formatting %s"},

	"ReportSendTargetPortals": {kind: AskInitiator, asks: true}, "RemoveSendTargetPortal": {kind: AskInitiator}, "ReportTargets": {kind: AskInitiator, asks: true},
	"ReportTargetPortals": {kind: AskInitiator, asks: true}, "Sessions": {kind: AskInitiator, asks: true}, "DevicesForSession": {kind: AskInitiator, asks: true},
	"PersistentLogins": {kind: AskInitiator, asks: true}, "RemovePersistentTarget": {kind: AskInitiator}, "SetInitiatorCHAPSharedSecret": {kind: AskInitiator},
	"AddSendTargetPortal": {kind: AskPortal}, "RefreshSendTargetPortal": {kind: AskPortal}, "Login": {kind: LoginTarget, change: "logging in to the target %s"},
	"Logout": {kind: LogoutTarget, change: "logging out of the session %s"},

	"FirmwareTable": {kind: AskServices, asks: true}, "BIOSSerialNumber": {kind: AskStorage, asks: true}, "Uptime": {kind: AskServices, asks: true},
	"ServiceConfig": {kind: AskServices, asks: true}, "ServiceStatus": {kind: AskServices, asks: true}, "ActiveDependents": {kind: AskServices, asks: true},
	"StartService": {kind: ControlService}, "StopService": {kind: ControlService},
	"SMBMapping": {kind: MapShare, asks: true}, "SMBMappings": {kind: AskStorage, asks: true}, "CreateSMBMapping": {kind: MapShare}, "RemoveSMBMapping": {kind: MapShare},
}

// HangPoint is what a call can hang on. Calls with the same one hang together.
type HangPoint struct {
	Kind   Kind
	Object string
}

// HangsOn returns what a call can hang on.
func (c *Call) HangsOn() HangPoint {
	kind := methods[c.Method].kind
	if c.in != nil {
		if kind == "" {
			return c.in.hangPoint()
		}
		return HangPoint{kind, winpath.Fold(c.Entry())}
	}
	switch object := c.first().(type) {
	case Path:
		at := hangPointOf(object)
		if at.Kind == ReachFile && (object.Rest == "" || c.Method == "TargetInfo") {
			at.Object += winpath.Separator // a volume that is mounted there may hang, while the folder answers
		}
		return at
	case Device:
		return HangPoint{kind, string(object)}
	case VolumeID:
		return HangPoint{kind, string(object.Device())}
	case uint32:
		return HangPoint{kind, string(PhysicalDrive(object))}
	case SessionID:
		return HangPoint{kind, object.String()}
	case SMBMappingRequest:
		return HangPoint{kind, serverOf(object.Remote)}
	case TargetPortal:
		return HangPoint{kind, object.Key()}
	case SendTargetPortal:
		return HangPoint{kind, object.Portal.Key()}
	case Login:
		return HangPoint{kind, FoldTarget(object.Target)}
	case PersistentLogin:
		return HangPoint{kind, FoldTarget(object.Target)}
	case string:
		if kind == MapShare {
			return HangPoint{kind, serverOf(object)}
		}
		return HangPoint{kind, winpath.Fold(object)}
	default:
		return HangPoint{kind, c.Method}
	}
}

// hangPointOf returns what a call that opens a path can hang on: the server, the volume if the path names one, or the
// path itself. All files of a server are one object: they hang together.
func hangPointOf(path Path) HangPoint {
	if id, ok := ParseVolumeID(path.Base); ok {
		return HangPoint{ReachVolume, string(id.Device())}
	}
	if strings.HasPrefix(path.Base, `\\`) {
		return HangPoint{ReachServer, serverOf(path.Base)}
	}
	return HangPoint{ReachFile, path.String()}
}

// hangPoint is that of calls in a directory. Directories that were opened to be listed are one object with that in which
// they were: the paths of a deep tree take more memory than the tree.
func (o *opened) hangPoint() HangPoint {
	for o.listed && o.above != nil {
		o = o.above
	}
	root := o
	for root.above != nil {
		root = root.above
	}
	at := hangPointOf(root.path)
	if at.Kind == ReachFile && root != o {
		at.Object = o.String()
	}
	return at
}

// HangsOnShare is what an inspector's call can hang on, which looks at all shares of a server. They may be on different
// machines, as with DFS: one that hangs must not keep it from the others.
func (c *Call) HangsOnShare() HangPoint {
	at := c.HangsOn()
	if path, ok := c.first().(Path); ok && at.Kind == ReachServer && c.in == nil {
		parts := strings.SplitN(strings.TrimPrefix(path.Base, `\\`), winpath.Separator, 3)
		at.Object = winpath.Fold(strings.Join(parts[:min(2, len(parts))], winpath.Separator))
	}
	return at
}

// serverOf is the server of a network path, in one spelling.
func serverOf(path string) string {
	server, _, _ := strings.Cut(strings.TrimPrefix(path, `\\`), winpath.Separator)
	return winpath.Fold(server)
}

// TakingOffline is the Change of a request to take a disk offline. It takes the volumes from their users when Windows has
// carried it out, so they count as changing from its beginning.
const TakingOffline = "taking %s offline"

// RereadingTable is the Change of a request to read the table of a disk again. Windows answers before it reads.
const RereadingTable = "reading the table of %s again"

// Mounting is the Change of a request to show a volume at a path.
const Mounting = "mounting a volume at %s"

// Unmounting is the Change of a request to take the volume at a path away.
const Unmounting = "unmounting %s"

// Change says what a call does that changes a disk, a volume or a session, with %s for the object, or is empty.
func (c *Call) Change() string {
	if c.Method == "SetDiskAttributes" {
		if args, ok := c.of.(*args3[Device, DiskAttributes, DiskAttributes]); ok && args.c.Offline {
			if args.b.Offline {
				return TakingOffline
			}
			return "bringing %s online"
		}
	}
	return methods[c.Method].change
}

// Changed is the object of a call with a Change.
func (c *Call) Changed() string {
	for _, arg := range c.Args() {
		if id, ok := arg.Value.(VolumeID); ok { // also of SetMountPoint
			return string(id.Device())
		}
	}
	return c.HangsOn().Object
}

// Asks reports whether a call changes nothing.
func (c *Call) Asks() bool { return methods[c.Method].asks }

// Pending is what a machine knows of the calls that Windows still has although their callers have left. A machine that
// does not bound its calls knows of none.
type Pending interface {
	// StuckChange returns the oldest change of a disk, a volume, an iSCSI target or session that is stuck, by the name of the
	// object: a Device, the device of a volume, FoldTarget of a target's name, a SessionID as text, the folded path of a mount. Changes of a disk and of
	// its volumes count for both, and so does any if Windows does not say where they are. While one is stuck the object must
	// not be used: Windows may carry the change out at any time. A disk that goes offline counts from the beginning, and so
	// does a mount for its path.
	StuckChange(ctx context.Context, object string) (StuckError, bool)

	// Announce says that something is about to be done to an object, by the words of a Change. It counts as stuck until end
	// is called: its caller may have left.
	Announce(change, object string) (end func())

	// Process is the machine as another process sees it. It has bounds of its own, and its calls go through f.
	Process(f Interceptor) Machine
}

// StuckError is a call that Windows has although its caller has left.
type StuckError struct {
	Doing  string        // "taking disk 3 offline"
	Since  time.Duration // it began so long ago
	Silent time.Duration // the disk has answered nothing for so long, since the callers of what is stuck have left: of the object itself, if any
}

func (s StuckError) Error() string {
	return fmt.Sprintf("%s, since %.0f s, has not come back from Windows", s.Doing, s.Since.Seconds())
}

// NoBounds has the methods of Pending for machines without bounds.
type NoBounds struct{}

// StuckChange returns none.
func (NoBounds) StuckChange(context.Context, string) (StuckError, bool) { return StuckError{}, false }

// Announce does nothing.
func (NoBounds) Announce(string, string) (end func()) { return func() {} }

// Process returns nothing: processes see a machine with bounds.
func (NoBounds) Process(Interceptor) Machine { return nil }

// ErrStuck is matched by the errors of calls that were not made, because earlier ones on the same object are stuck.
var ErrStuck = errors.New("an earlier call has not come back from Windows")
