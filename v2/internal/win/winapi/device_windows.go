package winapi

import (
	"math"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Access is what a device is opened for.
type Access uint32

// The accesses we use. More than NoAccess is for administrators.
const (
	// NoAccess is enough to query a disk or volume. A volume opened with it is only the
	// device: the call neither mounts its file system nor waits for it.
	NoAccess Access = 0
	// Read is for what is on a device: data, partition table, file system.
	Read Access = windows.GENERIC_READ
	// ReadWrite is for changes.
	ReadWrite Access = windows.GENERIC_READ | windows.GENERIC_WRITE
)

// Device is an open disk, partition or volume.
type Device struct {
	handle windows.Handle
}

// Open opens a device by its name, such as \\.\PhysicalDrive3 or \\?\Volume{guid}. Others
// may have it open at the same time; Windows insists on that for volumes.
//
// Close it soon: a handle that is open keeps its disk from going offline.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew
func Open(name string, access Access) (Device, error) {
	if name == "" || strings.HasSuffix(name, `\`) {
		return Device{}, winerr.InvalidName // this would be the root directory of a volume
	}
	p, err := utf16Ptr(name)
	if err != nil {
		return Device{}, err
	}
	handle, err := windows.CreateFile(p, uint32(access), windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE,
		nil, windows.OPEN_EXISTING, 0, 0)
	if err != nil {
		return Device{}, Error(err)
	}
	return Device{handle}, nil
}

// Close closes the device.
func (d Device) Close() { windows.CloseHandle(d.handle) }

// Control sends a request that has no answer.
// https://learn.microsoft.com/windows/win32/api/ioapiset/nf-ioapiset-deviceiocontrol
func (d Device) Control(code ControlCode, in []byte) error {
	_, err := d.control(code, in, nil)
	return err
}

// Query is a request that a driver answers with data.
type Query struct {
	Code ControlCode
	In   []byte
	// Size is how long an answer to expect; longer ones cost another call.
	Size int
	// Need reads from the beginning of an answer how long it wants to be; nil if it
	// does not say.
	Need func([]byte) int
}

// Query sends a request and returns the whole answer.
func (d Device) Query(q Query) ([]byte, error) {
	return grow(q.Size, q.Need, func(buffer []byte) (int, error) { return d.control(q.Code, q.In, buffer) })
}

func (d Device) control(code ControlCode, in, out []byte) (int, error) {
	var n uint32 // must be given, even where nothing is returned
	err := windows.DeviceIoControl(d.handle, uint32(code),
		unsafe.SliceData(in), Length(in), unsafe.SliceData(out), Length(out), &n, nil)
	return min(int(n), len(out)), Error(err)
}

// errHandleEOF is ERROR_HANDLE_EOF, the end of the device.
const errHandleEOF winerr.Code = 38

// Read reads length bytes at offset; both must be multiples of the sector size.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-readfile
func (d Device) Read(offset int64, length int) ([]byte, error) {
	b := alignedBuffer(length)
	// A device that was not opened for overlapped requests waits for the end of each,
	// but reads the offset from here.
	at := windows.Overlapped{Offset: uint32(offset & math.MaxUint32), OffsetHigh: uint32(offset >> 32 & math.MaxUint32)}
	var n uint32
	if err := windows.ReadFile(d.handle, b, &n, &at); err != nil {
		return nil, Error(err)
	}
	if int(n) < length {
		return nil, errHandleEOF
	}
	return b, nil
}

// alignedBuffer makes a buffer that any disk accepts: nothing is cached between us and
// the device, and some want whole pages.
func alignedBuffer(length int) []byte {
	const page = 4096
	b := make([]byte, length+page)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (page - 1)
	return b[skip : skip+length : skip+length]
}

// Flush writes out what is cached for all files of a volume.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-flushfilebuffers
func (d Device) Flush() error { return Error(windows.FlushFileBuffers(d.handle)) }
