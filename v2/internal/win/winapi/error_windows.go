package winapi

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Error makes a winerr.Code of what a function of golang.org/x/sys/windows returns. An
// NTSTATUS becomes the code that Win32 has for it.
func Error(err error) error {
	errno, status := syscall.Errno(0), windows.NTStatus(0)
	switch {
	case errors.As(err, &status) && status == windows.STATUS_REPARSE_POINT_ENCOUNTERED:
		return winerr.ReparsePointEncounter // not every Windows, nor Wine, translates it
	case errors.As(err, &status):
		return winerr.Code(status.Errno()) //nolint:gosec // RtlNtStatusToDosError returns 32 bits
	case !errors.As(err, &errno):
		return err
	case errno == syscall.EINVAL: // Go's own, for a function that fails without a reason
		return errGenFailure
	default:
		return winerr.Code(errno)
	}
}

// utf16Ptr converts a name for Windows. One with a NUL inside would be cut there.
func utf16Ptr(name string) (*uint16, error) {
	p, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, winerr.InvalidName
	}
	return p, nil
}
