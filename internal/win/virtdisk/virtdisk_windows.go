package virtdisk

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The functions of virtdisk.dll.
//
// Each returns its error code, and is asked to return when it is done: without OVERLAPPED.
// https://learn.microsoft.com/windows/win32/api/virtdisk/
var (
	virtdisk = windows.NewLazySystemDLL("virtdisk.dll")

	procCreateVirtualDisk          = virtdisk.NewProc("CreateVirtualDisk")
	procOpenVirtualDisk            = virtdisk.NewProc("OpenVirtualDisk")
	procAttachVirtualDisk          = virtdisk.NewProc("AttachVirtualDisk")
	procDetachVirtualDisk          = virtdisk.NewProc("DetachVirtualDisk")
	procGetVirtualDiskPhysicalPath = virtdisk.NewProc("GetVirtualDiskPhysicalPath")
	procExpandVirtualDisk          = virtdisk.NewProc("ExpandVirtualDisk")
)

// Find reports whether this machine can make virtual disks, and why not.
func Find() error {
	// Wine exports the functions all right, and ends the process when one is called.
	if windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil {
		return fmt.Errorf("virtdisk.dll of Wine makes no virtual disks: %w", winerr.NotSupported)
	}
	for _, proc := range []*windows.LazyProc{
		procCreateVirtualDisk, procOpenVirtualDisk, procAttachVirtualDisk,
		procDetachVirtualDisk, procGetVirtualDiskPhysicalPath, procExpandVirtualDisk,
	} {
		if err := proc.Find(); err != nil {
			return err
		}
	}
	return nil
}

// virtualStorageType is VIRTUAL_STORAGE_TYPE.
// https://learn.microsoft.com/windows/win32/api/virtdisk/ns-virtdisk-virtual_storage_type
type virtualStorageType struct {
	deviceID uint32
	vendorID windows.GUID
}

// vhdx is VIRTUAL_STORAGE_TYPE_DEVICE_VHDX of VIRTUAL_STORAGE_TYPE_VENDOR_MICROSOFT.
var vhdx = virtualStorageType{
	deviceID: 3,
	vendorID: windows.GUID{Data1: 0xec984aec, Data2: 0xa0f9, Data3: 0x47e9, Data4: [8]byte{0x90, 0x1f, 0x71, 0x41, 0x5a, 0x66, 0x34, 0x5b}},
}

// createParameters is CREATE_VIRTUAL_DISK_PARAMETERS with version 2 of its union.
// https://learn.microsoft.com/windows/win32/api/virtdisk/ns-virtdisk-create_virtual_disk_parameters
type createParameters struct {
	version            uint32
	_                  uint32 // the union is aligned to 8 bytes
	uniqueID           windows.GUID
	maximumSize        uint64
	blockSize          uint32
	sectorSize         uint32
	physicalSectorSize uint32
	parentPath         *uint16
	sourcePath         *uint16
	openFlags          uint32
	parentType         virtualStorageType
	sourceType         virtualStorageType
	resiliencyGUID     windows.GUID
}

// openParameters is OPEN_VIRTUAL_DISK_PARAMETERS with version 2 of its union.
// https://learn.microsoft.com/windows/win32/api/virtdisk/ns-virtdisk-open_virtual_disk_parameters
type openParameters struct {
	version        uint32
	getInfoOnly    int32 // BOOL
	readOnly       int32 // BOOL
	resiliencyGUID windows.GUID
}

// attachParameters is ATTACH_VIRTUAL_DISK_PARAMETERS with version 1 of its union, and room
// for the larger version 2.
// https://learn.microsoft.com/windows/win32/api/virtdisk/ns-virtdisk-attach_virtual_disk_parameters
type attachParameters struct {
	version  uint32
	_        uint32 // the union is aligned to 8 bytes
	reserved uint32
	_        [12]byte
}

// expandParameters is EXPAND_VIRTUAL_DISK_PARAMETERS with version 1 of its union.
// https://learn.microsoft.com/windows/win32/api/virtdisk/ns-virtdisk-expand_virtual_disk_parameters
type expandParameters struct {
	version uint32
	_       uint32 // the union is aligned to 8 bytes
	newSize uint64
}

// result makes an error of what a function of virtdisk.dll returns.
func result(function string, code uintptr) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", function, winerr.Code(code&math.MaxUint32))
}

// Create makes a file that is a dynamic VHDX of size bytes, in sectors of 512 or 4096. Such a file has
// a few megabytes until the disk is written to. The file must not exist.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-createvirtualdisk
func Create(path string, size int64, sectorSize uint32) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	// The size of blocks, of which the file grows, is left to Windows.
	parameters := createParameters{version: 2, maximumSize: uint64(max(size, 0)), sectorSize: sectorSize}
	var handle windows.Handle
	code, _, _ := procCreateVirtualDisk.Call(
		uintptr(unsafe.Pointer(&vhdx)), uintptr(unsafe.Pointer(name)),
		0, // VIRTUAL_DISK_ACCESS_NONE, as version 2 wants
		0, // the security descriptor files get there
		0, // CREATE_VIRTUAL_DISK_FLAG_NONE: dynamic
		0, uintptr(unsafe.Pointer(&parameters)), 0, uintptr(unsafe.Pointer(&handle)))
	if code == 0 {
		windows.CloseHandle(handle)
	}
	return result("CreateVirtualDisk", code)
}

// File is an open VHDX. An attached disk goes when its File is closed, and so when the process ends.
type File struct{ handle windows.Handle }

// Open opens a VHDX for everything below. The caller closes it.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-openvirtualdisk
func Open(path string) (File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return File{}, err
	}
	parameters := openParameters{version: 2}
	var handle windows.Handle
	code, _, _ := procOpenVirtualDisk.Call(
		uintptr(unsafe.Pointer(&vhdx)), uintptr(unsafe.Pointer(name)),
		0, // VIRTUAL_DISK_ACCESS_NONE, as version 2 wants, which means all
		0, // OPEN_VIRTUAL_DISK_FLAG_NONE
		uintptr(unsafe.Pointer(&parameters)), uintptr(unsafe.Pointer(&handle)))
	return File{handle}, result("OpenVirtualDisk", code)
}

// Close closes the file, and detaches the disk if it is attached.
func (f File) Close() { windows.CloseHandle(f.handle) }

// Attach makes the file a disk of this machine, until it is closed. Its volumes get no drive letters.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-attachvirtualdisk
func (f File) Attach(readOnly bool) error {
	// ATTACH_VIRTUAL_DISK_FLAG. Never PERMANENT_LIFETIME: so the disk goes when the process does,
	// however that ends.
	const flagReadOnly, flagNoDriveLetter = 1, 2
	flags := uintptr(flagNoDriveLetter)
	if readOnly {
		flags |= flagReadOnly
	}
	parameters := attachParameters{version: 1}
	code, _, _ := procAttachVirtualDisk.Call(uintptr(f.handle),
		0, // the default security descriptor, for administrators
		flags, 0, uintptr(unsafe.Pointer(&parameters)), 0)
	return result("AttachVirtualDisk", code)
}

// Detach detaches the disk, even while it is in use.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-detachvirtualdisk
func (f File) Detach() error {
	code, _, _ := procDetachVirtualDisk.Call(uintptr(f.handle), 0, 0)
	return result("DetachVirtualDisk", code)
}

// Number returns the number of the attached disk.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-getvirtualdiskphysicalpath
func (f File) Number() (number uint32, err error) {
	var path [windows.MAX_PATH]uint16
	size := uint32(unsafe.Sizeof(path)) // in bytes
	code, _, _ := procGetVirtualDiskPhysicalPath.Call(uintptr(f.handle),
		uintptr(unsafe.Pointer(&size)), uintptr(unsafe.Pointer(&path[0])))
	if err := result("GetVirtualDiskPhysicalPath", code); err != nil {
		return 0, err
	}
	name := windows.UTF16ToString(path[:])
	if _, err := fmt.Sscanf(strings.ToLower(name), `\\.\physicaldrive%d`, &number); err != nil {
		return 0, fmt.Errorf("the disk's name is %q: %w", name, err)
	}
	return number, nil
}

// Expand makes the disk larger. It is documented for detached disks only.
// https://learn.microsoft.com/windows/win32/api/virtdisk/nf-virtdisk-expandvirtualdisk
func (f File) Expand(size int64) error {
	parameters := expandParameters{version: 1, newSize: uint64(max(size, 0))}
	code, _, _ := procExpandVirtualDisk.Call(uintptr(f.handle), 0, uintptr(unsafe.Pointer(&parameters)), 0)
	return result("ExpandVirtualDisk", code)
}
