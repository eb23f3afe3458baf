package localtest

import "github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/trial"

// Case is one test.
type Case struct {
	Name string
	Run  func(trial.T)
}

// Cases are all tests.
var Cases = []Case{
	{"Files_Directory", filesDirectory},
	{"Files_Path", filesPath},
	{"Files_CreateDirectory", filesCreateDirectory},
	{"Files_Case", filesCase},
	{"Files_ListAndRemove", filesListAndRemove},
	{"Files_ListItself", filesListItself},
	{"Files_Crowd", filesCrowd},
	{"Files_Swap", filesSwap},
	{"Files_SwapJunction", filesSwapJunction},
	{"Files_TurnedIntoJunction", filesTurnedIntoJunction},
	{"Files_Junction", filesJunction},
	{"Files_DirectoryLink", filesDirectoryLink},
	{"Files_MountPoint", filesMountPoint},
	{"Files_LongName", filesLongName},
	{"Files_LongPath", filesLongPath},
	{"Files_LongerPath", filesLongerPath},
	{"Files_LongestPath", filesLongestPath},
	{"Files_ContextEnded", filesContextEnded},
	{"VolumeIDs", volumeIDs},
	{"VolumeOfDrive", volumeOfDrive},
	{"Location", location},
	{"VolumePaths", volumePaths},
	{"SystemVolumes", systemVolumes},
	{"FileSystem", fileSystem},
	{"VolumeSpace", volumeSpace},
	{"VolumeExtents", volumeExtents},
	{"NTFSVolumeData", ntfsVolumeData},
	{"FlushVolume", flushVolume},
	{"Volumes_ChangesToNothing", volumesChangesToNothing},
	{"DiskDevices", diskDevices},
	{"PhysicalDrive", physicalDrive},
	{"Disks_Missing", disksMissing},
	{"StorageAdapters", storageAdapters},
	{"RescanAdapter_Missing", rescanAdapterMissing},
	{"Format_Missing", formatMissing},
	{"RefreshStorageCache", refreshStorageCache},
	{"FirmwareTable", firmwareTable},
	{"BIOSSerialNumber", biosSerialNumber},
	{"Service", service},
	{"ActiveDependents", activeDependents},
	{"Service_Missing", serviceMissing},
	{"ISCSI_Questions", iscsiQuestions},
}
