package windows_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/local"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// These tests run on any Windows machine and change nothing of it, and also under Wine,
// where what Wine does not have is skipped with the reason.

// skipOnWine skips the test if Wine answers that it does not know the request.
func skipOnWine(t *testing.T, err error, codes ...winerr.Code) {
	t.Helper()
	if err != nil && onWine() && slices.Contains(codes, winerr.CodeOf(err)) {
		t.Skipf("Wine does not have it: %v", err)
	}
}

var machine = local.Machine()

// timeLimit gives the calls a context that can end, so that they run as those of a driver.
func timeLimit(t *testing.T) context.Context {
	t.Helper()
	skipOnEmulator(t)
	return limited(t, 5*time.Minute)
}

// skipOnEmulator skips a test of this machine where the emulated node is asked.
func skipOnEmulator(t *testing.T) {
	t.Helper()
	if *dirFlag == "" {
		t.Skip("only with -dir")
	}
}

// systemDrive is the root of the drive of Windows.
func systemDrive(t *testing.T) string {
	t.Helper()
	directory, err := windows.GetSystemWindowsDirectory()
	require.NoError(t, err)
	return filepath.VolumeName(directory) + `\`
}

// systemVolume is the volume of that drive.
func systemVolume(t *testing.T) win.VolumeID {
	t.Helper()
	id, err := machine.VolumeOfDrive(timeLimit(t), systemDrive(t))
	require.NoError(t, err)
	return id
}

func wantCode(t *testing.T, what string, err error, want ...winerr.Code) {
	t.Helper()
	if !slices.Contains(want, winerr.CodeOf(err)) {
		t.Errorf("%s: %v, want one of the codes %d", what, err, want)
	}
}

const noVolume win.VolumeID = `\\?\Volume{00000000-1111-2222-3333-444444444444}\`

func TestLocal_VolumeIDs(t *testing.T) {
	ids, err := machine.VolumeIDs(timeLimit(t))
	if err != nil || len(ids) == 0 {
		t.Fatalf("%v, %v", ids, err)
	}
	for _, id := range ids {
		if canonical, ok := win.ParseVolumeID(string(id)); !ok || canonical != id {
			t.Errorf("%q is not in our spelling", id)
		}
	}
	if id := systemVolume(t); !slices.Contains(ids, id) {
		t.Errorf("%v without %s, the volume of Windows", ids, id)
	}
	t.Logf("%q", ids)
}

func TestLocal_VolumeOfDrive(t *testing.T) {
	if id := systemVolume(t); id == "" {
		t.Error("the drive of Windows has no volume")
	}
	drives, err := windows.GetLogicalDrives()
	require.NoError(t, err)
	for i := range 26 {
		if drives&(1<<i) == 0 {
			_, err := machine.VolumeOfDrive(timeLimit(t), string(rune('A'+i))+`:\`)
			wantCode(t, "a drive that does not exist", err, winerr.FileNotFound, winerr.PathNotFound)
			break
		}
	}
}

func TestLocal_Location(t *testing.T) {
	ctx := timeLimit(t)
	directory, err := windows.GetSystemWindowsDirectory()
	require.NoError(t, err)
	for _, path := range []string{systemDrive(t), directory, filepath.Join(directory, "system32", "kernel32.dll")} {
		for _, p := range []win.Path{win.Following(path), win.Anywhere(path), win.Beneath(systemDrive(t), path)} {
			location, err := machine.Location(ctx, p)
			if want := string(systemVolume(t)) + path[len(systemDrive(t)):]; err != nil || !strings.EqualFold(location, want) {
				t.Errorf("%q: %q, %v, want %q", p, location, err, want)
			}
		}
	}
	if volumeHasFiles(t) {
		rest := directory[len(systemDrive(t)):]
		location, err := machine.Location(ctx, win.Path{Base: string(systemVolume(t)), Rest: rest})
		if want := string(systemVolume(t)) + rest; onWine() && winerr.CodeOf(err) == winerr.GenFailure {
			t.Logf("from the volume on: Wine does not report: %v", err)
		} else if err != nil || !strings.EqualFold(location, want) {
			t.Errorf("from the volume on: %q, %v, want %q", location, err, want)
		}
	}
	_, err = machine.Location(ctx, win.Following(filepath.Join(directory, "does", "not", "exist")))
	wantCode(t, "nothing", err, winerr.FileNotFound, winerr.PathNotFound)
}

func TestLocal_VolumePaths(t *testing.T) {
	paths, err := machine.VolumePaths(timeLimit(t), systemVolume(t))
	if err != nil || !slices.ContainsFunc(paths, func(p string) bool { return strings.EqualFold(p, systemDrive(t)) }) {
		t.Errorf("%q, %v, want %q among them", paths, err, systemDrive(t))
	}
	_, err = machine.VolumePaths(timeLimit(t), noVolume)
	wantCode(t, "a volume that does not exist", err, winerr.FileNotFound)
}

func TestLocal_SystemVolumes(t *testing.T) {
	ids, err := machine.SystemVolumes(timeLimit(t))
	if err != nil || len(ids) == 0 || len(ids) > 2 || ids[0] != systemVolume(t) {
		t.Errorf("%q, %v, want first %q", ids, err, systemVolume(t))
	}
	t.Logf("%q", ids)
}

func TestLocal_FileSystem(t *testing.T) {
	ctx := timeLimit(t)
	info, err := machine.FileSystem(ctx, systemVolume(t))
	// The label is the image's: GitHub's and Azure's call the volume "Windows".
	if want := (win.FileSystemInfo{Name: "NTFS", Label: info.Label}); err != nil || info != want {
		t.Errorf("%+v, %v, want %+v", info, err, want)
	}
	_, err = machine.FileSystem(ctx, noVolume)
	wantCode(t, "a volume that does not exist", err, winerr.FileNotFound, winerr.PathNotFound)
}

func TestLocal_VolumeSpace(t *testing.T) {
	ctx := timeLimit(t)
	space, err := machine.VolumeSpace(ctx, systemVolume(t))
	if err != nil || space.Total <= 0 || space.Free < 0 || space.Free > space.Total {
		t.Errorf("%+v, %v", space, err)
	}
	_, err = machine.VolumeSpace(ctx, noVolume)
	wantCode(t, "a volume that does not exist", err, winerr.FileNotFound, winerr.PathNotFound)
}

func TestLocal_VolumeExtents(t *testing.T) {
	ctx := timeLimit(t)
	extents, err := machine.VolumeExtents(ctx, systemVolume(t))
	require.NoError(t, err)
	if len(extents) == 0 && onWine() {
		t.Log("Wine's volumes have no extents")
	} else if len(extents) == 0 || extents[0].Length <= 0 {
		t.Errorf("%+v", extents)
	}
	_, err = machine.VolumeExtents(ctx, noVolume)
	wantCode(t, "a volume that does not exist", err, winerr.FileNotFound)
}

func TestLocal_NTFSVolumeData(t *testing.T) {
	ctx := timeLimit(t)
	_, err := machine.NTFSVolumeData(ctx, noVolume)
	wantCode(t, "a volume that does not exist", err, winerr.FileNotFound)
	data, err := machine.NTFSVolumeData(ctx, systemVolume(t))
	skipOnWine(t, err, winerr.NotSupported, winerr.InvalidFunction, winerr.AccessDenied)
	skipWithoutRights(t, err)
	if err != nil || data.TotalClusters <= 0 || data.Sectors <= 0 {
		t.Errorf("%+v, %v", data, err)
	}
}

// skipWithoutRights skips what only administrators may do.
func skipWithoutRights(t *testing.T, err error) {
	t.Helper()
	if winerr.CodeOf(err) == winerr.AccessDenied && !windows.GetCurrentProcessToken().IsElevated() {
		t.Skipf("only for administrators: %v", err)
	}
}

func TestLocal_FlushVolume(t *testing.T) {
	ctx := timeLimit(t)
	wantCode(t, "a volume that does not exist", machine.FlushVolume(ctx, noVolume), winerr.FileNotFound)
	err := machine.FlushVolume(ctx, systemVolume(t))
	skipOnWine(t, err, winerr.InvalidFunction, winerr.NotSupported, winerr.AccessDenied, 6)
	skipWithoutRights(t, err)
	require.NoError(t, err)
}

func TestLocal_VolumesChangesToNothing(t *testing.T) {
	ctx := timeLimit(t)
	wantCode(t, "extend a volume that does not exist", machine.ExtendVolume(ctx, noVolume, 1), winerr.FileNotFound)
	wantCode(t, "bring a volume online that does not exist", machine.OnlineVolume(ctx, noVolume), winerr.FileNotFound)
	partition := win.VolumeID(win.PartitionDevice(4000, 1))
	wantCode(t, "bring a partition online that does not exist", machine.OnlineVolume(ctx, partition), winerr.FileNotFound, winerr.PathNotFound)
}

func TestLocal_DiskDevices(t *testing.T) {
	ctx := timeLimit(t)
	devices, err := machine.DiskDevices(ctx)
	require.NoError(t, err)
	t.Logf("%q", devices)
	if len(devices) == 0 && !onWine() {
		t.Error("Windows has no disk")
	}
	for _, d := range devices {
		number, err := machine.DeviceNumber(ctx, d)
		if err != nil {
			t.Logf("%s: %v", d, err)
			continue
		}
		if number.Type != win.DeviceTypeDisk || number.Partition != 0 {
			t.Errorf("%s is %+v", d, number)
		}
		describeDisk(t, d)
		describeDisk(t, win.PhysicalDrive(number.Number))
	}
}

// physicalDrive is for machines whose list of disks is empty, as Wine's.
func TestLocal_PhysicalDrive(t *testing.T) {
	d := win.PhysicalDrive(0)
	number, err := machine.DeviceNumber(timeLimit(t), d)
	if winerr.CodeOf(err) == winerr.FileNotFound {
		t.Skip("there is no disk 0")
	}
	if want := (win.DeviceNumber{Type: win.DeviceTypeDisk}); err != nil || number != want {
		t.Errorf("%+v, %v, want %+v", number, err, want)
	}
	describeDisk(t, d)
}

// describe asks a disk everything. Drivers need not know all of it.
func describeDisk(t *testing.T, d win.Device) {
	t.Helper()
	ctx := timeLimit(t)
	for _, c := range []struct {
		what string
		ask  func() (any, error)
	}{
		{"descriptor", func() (any, error) { return machine.DeviceDescriptor(ctx, d) }},
		{"identifiers", func() (any, error) { return machine.DeviceIdentifiers(ctx, d) }},
		{"location", func() (any, error) { return machine.DeviceLocation(ctx, d) }},
		{"SCSI address", func() (any, error) { return machine.SCSIAddress(ctx, d) }},
		{"geometry", func() (any, error) { return machine.DiskGeometry(ctx, d) }},
		{"attributes", func() (any, error) { return machine.DiskAttributes(ctx, d) }},
		{"layout", func() (any, error) { return machine.DriveLayout(ctx, d) }},
		{"first sector", func() (any, error) {
			b, err := machine.ReadDevice(ctx, d, 0, 4096)
			return b[:min(len(b), 512)], err
		}},
	} {
		answer, err := c.ask()
		t.Logf("%s: %s: %+v, %v", d, c.what, answer, err)
		if code := winerr.CodeOf(err); err != nil && (code == 0 || code == 13 || code == winerr.InvalidParameter) {
			t.Errorf("%s: %s: %v", d, c.what, err)
		}
	}
}

func TestLocal_DisksMissing(t *testing.T) {
	ctx := timeLimit(t)
	d := win.PhysicalDrive(4000)
	_, err := machine.DeviceNumber(ctx, d)
	wantCode(t, "number", err, winerr.FileNotFound)
	_, err = machine.DiskGeometry(ctx, d)
	wantCode(t, "geometry", err, winerr.FileNotFound)
	_, err = machine.DriveLayout(ctx, d)
	wantCode(t, "layout", err, winerr.FileNotFound)
	_, err = machine.DiskAttributes(ctx, d)
	wantCode(t, "attributes", err, winerr.FileNotFound)
	_, err = machine.ReadDevice(ctx, d, 0, 512)
	wantCode(t, "read", err, winerr.FileNotFound)
	wantCode(t, "attributes", machine.SetDiskAttributes(ctx, d, win.DiskAttributes{}, win.DiskAttributes{Offline: true}), winerr.FileNotFound)
	wantCode(t, "layout", machine.SetDriveLayout(ctx, d, win.DriveLayout{Style: win.StyleGPT}), winerr.FileNotFound)
	wantCode(t, "MBR layout", machine.SetDriveLayout(ctx, d, win.DriveLayout{Style: win.StyleMBR}), winerr.NotSupported)
	wantCode(t, "create", machine.CreateDisk(ctx, d, win.NewGUID()), winerr.FileNotFound)
	wantCode(t, "grow", machine.GrowPartition(ctx, d, 1, 1<<20), winerr.FileNotFound)
	wantCode(t, "update", machine.UpdateDisk(ctx, d), winerr.FileNotFound)
	wantCode(t, "size", machine.UpdateDriveSize(ctx, d), winerr.FileNotFound)
	_, err = machine.DeviceNumber(ctx, win.Device(noVolume))
	wantCode(t, "a directory instead of a device", err, winerr.InvalidName)
	_, err = machine.DeviceNumber(ctx, "\\\\.\\PhysicalDrive0\x00")
	wantCode(t, "a name with NUL", err, winerr.InvalidName)
}

func TestLocal_StorageAdapters(t *testing.T) {
	adapters, err := machine.StorageAdapters(timeLimit(t))
	require.NoError(t, err)
	t.Logf("%q", adapters)
	if len(adapters) == 0 && !onWine() {
		t.Error("Windows has no storage adapter")
	}
}

func TestLocal_RescanAdapterMissing(t *testing.T) {
	err := machine.RescanAdapter(timeLimit(t), `PCI\VEN_0000&DEV_0000\nonsense`)
	skipOnWine(t, err, 31)
	wantCode(t, "an adapter that does not exist", err, winerr.NoSuchDevice)
}
