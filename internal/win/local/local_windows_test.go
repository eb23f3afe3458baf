package local_test

import (
	"context"
	"slices"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local/localtest"
)

// run runs a case by its name.
func run(t *testing.T, name string) {
	t.Helper()
	i := slices.IndexFunc(localtest.Cases, func(c localtest.Case) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no case %s", name)
	}
	localtest.Cases[i].Run(t)
}

func TestFiles_Directory(t *testing.T)          { run(t, "Files_Directory") }
func TestFiles_Path(t *testing.T)               { run(t, "Files_Path") }
func TestFiles_CreateDirectory(t *testing.T)    { run(t, "Files_CreateDirectory") }
func TestFiles_Case(t *testing.T)               { run(t, "Files_Case") }
func TestFiles_ListAndRemove(t *testing.T)      { run(t, "Files_ListAndRemove") }
func TestFiles_ListItself(t *testing.T)         { run(t, "Files_ListItself") }
func TestFiles_Crowd(t *testing.T)              { run(t, "Files_Crowd") }
func TestFiles_Swap(t *testing.T)               { run(t, "Files_Swap") }
func TestFiles_SwapJunction(t *testing.T)       { run(t, "Files_SwapJunction") }
func TestFiles_TurnedIntoJunction(t *testing.T) { run(t, "Files_TurnedIntoJunction") }
func TestFiles_Junction(t *testing.T)           { run(t, "Files_Junction") }
func TestFiles_DirectoryLink(t *testing.T)      { run(t, "Files_DirectoryLink") }
func TestFiles_MountPoint(t *testing.T)         { run(t, "Files_MountPoint") }
func TestFiles_LongName(t *testing.T)           { run(t, "Files_LongName") }
func TestFiles_LongPath(t *testing.T)           { run(t, "Files_LongPath") }
func TestFiles_LongerPath(t *testing.T)         { run(t, "Files_LongerPath") }
func TestFiles_LongestPath(t *testing.T)        { run(t, "Files_LongestPath") }
func TestFiles_ContextEnded(t *testing.T)       { run(t, "Files_ContextEnded") }
func TestVolumeIDs(t *testing.T)                { run(t, "VolumeIDs") }
func TestVolumeOfDrive(t *testing.T)            { run(t, "VolumeOfDrive") }
func TestLocation(t *testing.T)                 { run(t, "Location") }
func TestVolumePaths(t *testing.T)              { run(t, "VolumePaths") }
func TestSystemVolumes(t *testing.T)            { run(t, "SystemVolumes") }
func TestFileSystem(t *testing.T)               { run(t, "FileSystem") }
func TestVolumeSpace(t *testing.T)              { run(t, "VolumeSpace") }
func TestVolumeExtents(t *testing.T)            { run(t, "VolumeExtents") }
func TestNTFSVolumeData(t *testing.T)           { run(t, "NTFSVolumeData") }
func TestFlushVolume(t *testing.T)              { run(t, "FlushVolume") }
func TestVolumes_ChangesToNothing(t *testing.T) { run(t, "Volumes_ChangesToNothing") }
func TestDiskDevices(t *testing.T)              { run(t, "DiskDevices") }
func TestPhysicalDrive(t *testing.T)            { run(t, "PhysicalDrive") }
func TestDisks_Missing(t *testing.T)            { run(t, "Disks_Missing") }
func TestStorageAdapters(t *testing.T)          { run(t, "StorageAdapters") }
func TestRescanAdapter_Missing(t *testing.T)    { run(t, "RescanAdapter_Missing") }
func TestFormat_Missing(t *testing.T)           { run(t, "Format_Missing") }
func TestRefreshStorageCache(t *testing.T)      { run(t, "RefreshStorageCache") }
func TestFirmwareTable(t *testing.T)            { run(t, "FirmwareTable") }
func TestBIOSSerialNumber(t *testing.T)         { run(t, "BIOSSerialNumber") }
func TestService(t *testing.T)                  { run(t, "Service") }
func TestActiveDependents(t *testing.T)         { run(t, "ActiveDependents") }
func TestService_Missing(t *testing.T)          { run(t, "Service_Missing") }
func TestISCSI_Questions(t *testing.T)          { run(t, "ISCSI_Questions") }

func BenchmarkRemove(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	dir, err := local.Machine().OpenDirectory(ctx, win.Following(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := dir.CreateDirectory(ctx, "x"); err != nil {
			b.Fatal(err)
		}
		if err := dir.Remove(ctx, "x"); err != nil {
			b.Fatal(err)
		}
	}
}
