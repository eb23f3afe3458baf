package winapi

import (
	"errors"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
)

// Error makes a winerr.Code of what a function of golang.org/x/sys/windows returns.
func Error(err error) error {
	errno := syscall.Errno(0)
	switch {
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
