package windows_test

import (
	"fmt"
	"math"
	"strings"
	"syscall"
	"unsafe"

	"github.com/Microsoft/go-winio/vhd"
	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// createVHDX makes a file that is a dynamic VHDX of size bytes, in sectors of 512 or 4096. Such a file has a few
// megabytes until the disk is written to. The file must not exist.
func createVHDX(path string, size int64, sectorSize uint32) error {
	handle, err := vhd.CreateVirtualDisk(path, vhd.VirtualDiskAccessNone, vhd.CreateVirtualDiskFlagNone, &vhd.CreateVirtualDiskParameters{
		Version: 2, Version2: vhd.CreateVersion2{MaximumSize: uint64(size), SectorSizeInBytes: sectorSize},
	})
	if err != nil {
		return winapi.Error(err)
	}
	return syscall.CloseHandle(handle)
}

// vhdx is an open VHDX. An attached disk goes when it is closed, and so when the process ends.
type vhdx struct{ handle syscall.Handle }

// openVHDX opens a VHDX for everything below.
func openVHDX(path string) (vhdx, error) {
	handle, err := vhd.OpenVirtualDiskWithParameters(path, vhd.VirtualDiskAccessNone, vhd.OpenVirtualDiskFlagNone, &vhd.OpenVirtualDiskParameters{Version: 2})
	return vhdx{handle}, winapi.Error(err)
}

// close closes the file, and detaches the disk if it is attached.
func (v vhdx) close() { _ = syscall.CloseHandle(v.handle) }

// attach makes the file a disk of this machine, until it is closed. Its volumes get no drive letters. Never
// AttachVirtualDiskFlagPermanentLifetime: so the disk goes when the process does, however that ends.
func (v vhdx) attach(readOnly bool) error {
	flags := vhd.AttachVirtualDiskFlagNoDriveLetter
	if readOnly {
		flags |= vhd.AttachVirtualDiskFlagReadOnly
	}
	return winapi.Error(vhd.AttachVirtualDisk(v.handle, flags, &vhd.AttachVirtualDiskParameters{Version: 1}))
}

// detach detaches the disk, even while it is in use.
func (v vhdx) detach() error { return winapi.Error(vhd.DetachVirtualDisk(v.handle)) }

// number returns the number of the attached disk.
func (v vhdx) number() (number uint32, err error) {
	name, err := vhd.GetVirtualDiskPhysicalPath(v.handle)
	if err != nil {
		return 0, winapi.Error(err)
	}
	if _, err := fmt.Sscanf(strings.ToLower(name), `\\.\physicaldrive%d`, &number); err != nil {
		return 0, fmt.Errorf("the disk's name is %q: %w", name, err)
	}
	return number, nil
}

// expand makes the disk larger. It is documented for detached disks only.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-expandvirtualdisk
func (v vhdx) expand(size int64) error {
	parameters := struct {
		version uint32
		_       uint32 // the union is aligned to 8 bytes
		newSize uint64
	}{version: 1, newSize: uint64(size)}
	code, _, _ := windows.NewLazySystemDLL("virtdisk.dll").NewProc("ExpandVirtualDisk").Call(uintptr(v.handle), 0, uintptr(unsafe.Pointer(&parameters)), 0)
	if code != 0 {
		return winerr.Code(code & math.MaxUint32)
	}
	return nil
}
