package winapi_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winlayout"
)

// These tests change nothing of the machine. Most of what the package does is tested
// through internal/win/local.

// onWine reports whether this is not Windows.
func onWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}

func openDisk0(t *testing.T) winapi.Device {
	t.Helper()
	device, err := winapi.Open(`\\.\PhysicalDrive0`, winapi.NoAccess)
	if winerr.CodeOf(err) == winerr.FileNotFound {
		t.Skip("there is no disk 0")
	}
	require.NoError(t, err)
	t.Cleanup(device.Close)
	return device
}

// TestQuery_Grows asks a real driver with a buffer that holds only the header.
func TestQuery_Grows(t *testing.T) {
	device := openDisk0(t)
	query := winapi.Query{
		Code: winapi.StorageQueryProperty,
		In:   winlayout.EncodePropertyQuery(winlayout.DeviceProperty),
		Size: 1024,
		Need: winlayout.DescriptorSize,
	}
	want, err := device.Query(query)
	if err != nil || len(want) <= 8 {
		t.Fatalf("% x, %v", want, err)
	}
	query.Size = 8
	if got, err := device.Query(query); err != nil || !bytes.Equal(got, want) {
		t.Errorf("% x, %v, want % x", got, err, want)
	}
}

// TestControl_Access: what changes a disk is refused on one that was not opened for it,
// before any driver sees it.
func TestControl_Access(t *testing.T) {
	device := openDisk0(t)
	err := device.Control(winapi.DiskGrowPartition, winlayout.EncodeGrowPartition(4000, 0))
	if winerr.CodeOf(err) != winerr.AccessDenied {
		t.Errorf("%v, want %v", err, winerr.AccessDenied)
	}
}

func TestAlignedBuffer(t *testing.T) {
	for _, length := range []int{0, 1, 512, 4096, 65536} {
		b := winapi.AlignedBuffer(length)
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); at%4096 != 0 || len(b) != length || cap(b) != length {
			t.Errorf("%d bytes at %#x for %d", cap(b), at, length)
		}
	}
}

func TestInterfaceNode(t *testing.T) {
	devices, err := winapi.DeviceInterfaces(winapi.DiskClass)
	require.NoError(t, err)
	for _, device := range devices {
		node, err := winapi.InterfaceNode(device.Path)
		if onWine() {
			t.Skipf("Wine has no device tree: %v", err)
		}
		if err != nil || node == 0 || node != device.Node {
			t.Errorf("%s is the node %d, %v, want %d", device.Path, node, err, device.Node)
		}
		if located, err := winapi.LocateDeviceNode(device.InstanceID); err != nil || located != node {
			t.Errorf("%s is the node %d, %v, want %d", device.InstanceID, located, err, node)
		}
		parent, err := node.Parent()
		if err != nil {
			t.Errorf("parent of %s: %v", device.InstanceID, err)
		}
		number, err := parent.BusNumber()
		t.Logf("%s: bus %d, %v", device.InstanceID, number, err)
	}
	if _, err := winapi.InterfaceNode(`\\?\nonsense`); err == nil {
		t.Error("nonsense has a node")
	}
}

// TestPrivileges: an administrator holds them, others do not; both is fine, and twice too.
func TestPrivileges(t *testing.T) {
	for _, privilege := range []winapi.Privilege{winapi.LoadDriverPrivilege, winapi.ManageVolumePrivilege, winapi.CreateSymbolicLinkPrivilege} {
		first, second := privilege.Enable(), privilege.Enable()
		if onWine() && winerr.CodeOf(first) == 1313 { // ERROR_NO_SUCH_PRIVILEGE
			t.Logf("Wine does not know all of them: %v", first)
			continue
		}
		t.Logf("%v, elevated: %v", first, windows.GetCurrentProcessToken().IsElevated())
		if !errors.Is(second, first) || (first != nil && winerr.CodeOf(first) != winerr.PrivilegeNotHeld) {
			t.Errorf("%v, then %v", first, second)
		}
		if first != nil && windows.GetCurrentProcessToken().IsElevated() {
			t.Errorf("refused to an administrator: %v", first)
		}
	}
}

func TestError(t *testing.T) {
	for err, want := range map[error]error{
		nil:                       nil,
		io.EOF:                    io.EOF,
		windows.ERROR_NOT_READY:   winerr.NotReady,
		syscall.Errno(0xE0000227): winerr.Code(0xE0000227), // of setupapi.dll
		syscall.EINVAL:            winerr.Code(31),

		windows.STATUS_REPARSE_POINT_ENCOUNTERED: winerr.ReparsePointEncounter,
		windows.STATUS_OBJECT_NAME_NOT_FOUND:     winerr.FileNotFound,
		windows.STATUS_OBJECT_PATH_NOT_FOUND:     winerr.PathNotFound,
		windows.STATUS_OBJECT_NAME_COLLISION:     winerr.AlreadyExists,
		windows.STATUS_OBJECT_NAME_INVALID:       winerr.InvalidName,
		windows.STATUS_SHARING_VIOLATION:         winerr.SharingViolation,
		windows.STATUS_DIRECTORY_NOT_EMPTY:       winerr.DirNotEmpty,
		windows.STATUS_NOT_A_REPARSE_POINT:       winerr.NotAReparsePoint,
	} {
		if got := winapi.Error(err); !errors.Is(got, want) {
			t.Errorf("%v became %v, want %v", err, got, want)
		}
	}
}

func TestSystem(t *testing.T) {
	directory, err := winapi.WindowsDirectory()
	if err != nil || directory == "" {
		t.Errorf("%q, %v", directory, err)
	}
	device, err := winapi.DeviceOf(directory[:2])
	if err != nil || device == "" {
		t.Errorf("device of %s: %q, %v", directory[:2], device, err)
	}
	partition, err := winapi.SystemPartition()
	if err != nil && !onWine() {
		t.Error(err)
	}
	t.Logf("Windows is in %s on %s, and starts from %q, %v", directory, device, partition, err)
}

func TestSANPolicy(t *testing.T) {
	policy, err := winapi.SANPolicy()
	require.NoError(t, err)
	t.Logf("%d", policy)
}

// TestSystemLibrariesOnly: a library outside the directory of Windows is not found by its name,
// even if its directory is the current one, and one of Windows is.
func TestSystemLibrariesOnly(t *testing.T) {
	require.NoError(t, winapi.SystemLibrariesOnly())
	source, err := windows.GetSystemDirectory()
	require.NoError(t, err)
	library, err := os.ReadFile(filepath.Join(source, "version.dll"))
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("csi-proxy-planted.dll", library, 0o600))
	if handle, err := windows.LoadLibrary("csi-proxy-planted.dll"); err == nil {
		_ = windows.FreeLibrary(handle)
		t.Error("a library in the current directory was loaded")
	}
	handle, err := windows.LoadLibrary("version.dll")
	require.NoError(t, err, "a library of Windows:")
	_ = windows.FreeLibrary(handle)
}

// TestKeepPrivileges: the process keeps what the daemon needs and has, and cannot get anything else back. It is another
// one, because that is for good.
func TestKeepPrivileges(t *testing.T) {
	const another = "CSI_PROXY_TEST_PRIVILEGES"
	if os.Getenv(another) == "" {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKeepPrivileges$", "-test.v")
		process.Env = append(os.Environ(), another+"=1")
		output, err := process.CombinedOutput()
		if err != nil || !bytes.Contains(output, []byte("it keeps")) {
			t.Errorf("%v\n%s", err, output)
		}
		return
	}
	before := privileges(t)
	missing, err := winapi.KeepPrivileges()
	require.NoError(t, err)
	after := privileges(t)
	t.Logf("of %d privileges it keeps %d; %q are missing", len(before), len(after), missing)
	if want := len(winapi.RequiredPrivileges()) - len(missing); len(after) != want || len(before) < len(after) {
		t.Errorf("it has %d privileges, want %d", len(after), want)
	}
	for _, p := range after {
		if !slices.ContainsFunc(before, func(b windows.LUIDAndAttributes) bool { return p == b }) {
			t.Errorf("%+v has changed", p)
		}
	}
	if err := winapi.LoadDriverPrivilege.Enable(); (err != nil) != slices.Contains(missing, "SeLoadDriverPrivilege") {
		t.Errorf("enable what it keeps: %v", err)
	}
}

// privileges returns those of this process.
func privileges(t *testing.T) []windows.LUIDAndAttributes {
	t.Helper()
	buffer := make([]byte, 1<<12)
	var needed uint32
	require.NoError(t, windows.GetTokenInformation(windows.GetCurrentProcessToken(), windows.TokenPrivileges, &buffer[0], uint32(len(buffer)), &needed))
	return (*windows.Tokenprivileges)(unsafe.Pointer(&buffer[0])).AllPrivileges()
}
