package verify

import (
	"reflect"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// passedOn are the methods that the guard passes on: they change no disk and no volume. Those that change files
// and mounted folders get paths below the folder of the run.
var passedOn = []string{
	// questions
	"ActiveDependents", "BIOSSerialNumber", "DeviceDescriptor", "DeviceIdentifiers", "DeviceLocation", "DeviceNumber",
	"DevicesForSession", "DiskAttributes", "DiskDevices", "DiskGeometry", "DriveLayout", "FileInfo", "FileSystem",
	"FirmwareTable", "Location", "NTFSVolumeData", "Now", "OpenDirectory", "PathSpace", "PersistentLogins", "ReadDevice",
	"ReparsePoint", "ReportSendTargetPortals", "ReportTargetPortals", "ReportTargets", "RootEntries", "RootSecurity",
	"SANPolicy", "SCSIAddress", "SMBMapping", "SMBMappings", "ServiceConfig", "ServiceStatus", "Sessions", "Sleep",
	"StorageAdapters", "SystemVolumes", "TargetInfo", "Uptime", "VolumeExtents", "VolumeIDs", "VolumeOfDrive",
	"VolumePaths", "VolumeSpace",
	// Windows looks again, or writes what it would write anyway
	"FlushVolume", "RefreshStorageCache", "RescanAdapter", "UpdateDisk", "UpdateDriveSize",
	// servers, services and files, of which the questions use what the plan announces
	"AddSendTargetPortal", "CreateDirectory", "CreateSMBMapping", "Login", "Logout", "RefreshSendTargetPortal",
	"RemovePersistentTarget", "RemoveSMBMapping", "RemoveSendTargetPortal", "SetInitiatorCHAPSharedSecret",
	"StartService", "StopService",
}

// TestGuard: a run changes no disk and no volume that is not its own. A new method is in passedOn or guarded.
func TestGuard(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	if err != nil {
		t.Fatal(err)
	}
	before, err := node.DiskFingerprint(0)
	if err != nil {
		t.Fatal(err)
	}
	guarded := reflect.ValueOf(guardedMachine{node, &run{Site: &Site{Machine: node}}})
	refused := 0
	for method := range reflect.TypeFor[win.Machine]().Methods() {
		if slices.Contains(passedOn, method.Name) {
			continue
		}
		arguments := []reflect.Value{reflect.ValueOf(t.Context())}
		for i := 1; i < method.Type.NumIn(); i++ {
			argument := reflect.New(method.Type.In(i)).Elem()
			switch argument.Type() {
			case reflect.TypeFor[win.Device]():
				argument.SetString(string(win.PhysicalDrive(0)))
			case reflect.TypeFor[win.VolumeID]():
				argument.SetString(winsim.SystemVolume)
			}
			arguments = append(arguments, argument)
		}
		results := guarded.MethodByName(method.Name).Call(arguments)
		if err, _ := reflect.TypeAssert[error](results[len(results)-1]); winerr.CodeOf(err) != winerr.AccessDenied {
			t.Errorf("%s of the disk of Windows: %v", method.Name, err)
		}
		refused++
	}
	if refused < 11 {
		t.Errorf("%d methods are guarded", refused)
	}
	if after, err := node.DiskFingerprint(0); err != nil || after != before {
		t.Errorf("the disk of Windows has changed: %v", err)
	}
}
