package devices

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

// NTSTATUS values.
const (
	statusSuccess        = 0
	statusBufferOverflow = 0x80000005 // the beginning of the answer is there
	statusUnsuccessful   = 0xC0000001
)

// statuses are what drivers answer, for the codes that Windows makes of that.
// https://learn.microsoft.com/windows/win32/api/winternl/nf-winternl-rtlntstatustodoserror
var statuses = map[winerr.Code]uint32{
	winerr.InvalidFunction:    0xC0000010, // INVALID_DEVICE_REQUEST
	winerr.FileNotFound:       0xC0000034, // OBJECT_NAME_NOT_FOUND
	winerr.PathNotFound:       0xC000003A, // OBJECT_PATH_NOT_FOUND
	winerr.AccessDenied:       0xC0000022, // ACCESS_DENIED
	winerr.WriteProtect:       0xC00000A2, // MEDIA_WRITE_PROTECTED
	winerr.NotReady:           0xC00000A3, // DEVICE_NOT_READY
	winerr.CRC:                0xC000009C, // DEVICE_DATA_ERROR
	winerr.BadLength:          0xC0000004, // INFO_LENGTH_MISMATCH
	winerr.SharingViolation:   0xC0000043, // SHARING_VIOLATION
	winerr.NotSupported:       0xC00000BB, // NOT_SUPPORTED
	winerr.DevNotExist:        0xC00000C0, // DEVICE_DOES_NOT_EXIST
	winerr.InvalidParameter:   0xC000000D, // INVALID_PARAMETER
	winerr.DiskFull:           0xC000007F, // DISK_FULL
	winerr.SemTimeout:         0xC00000B5, // IO_TIMEOUT
	winerr.InsufficientBuffer: 0xC0000023, // BUFFER_TOO_SMALL
	winerr.BusyCode:           0x80000011, // DEVICE_BUSY
	winerr.MoreData:           statusBufferOverflow,
	winerr.NoSuchDevice:       0xC000000E, // NO_SUCH_DEVICE
	winerr.UnrecognizedVolume: 0xC000014F, // UNRECOGNIZED_VOLUME
	winerr.IODevice:           0xC0000185, // IO_DEVICE_ERROR
	winerr.DeviceNotConnected: 0xC000009D, // DEVICE_NOT_CONNECTED
	winerr.DeviceRemoved:      0xC00002B6, // DEVICE_REMOVED
}

// statusOf is what a driver answers so that its caller gets the error.
func statusOf(err error) uint32 {
	if err == nil {
		return statusSuccess
	}
	if status, known := statuses[winerr.CodeOf(err)]; known {
		return status
	}
	return statusUnsuccessful
}
