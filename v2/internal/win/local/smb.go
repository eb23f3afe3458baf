package local

import (
	"errors"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// smbError is the error of a method of an SMB class. The provider is documented neither to
// return codes nor to throw them, and is seen to do both; and it may find out that a mapping
// is not there before or after WMI does.
func smbError(result uint32, err error) error {
	const win32 = 0x80070000 // HRESULT_FROM_WIN32
	if err == nil && result != 0 {
		if result&0xFFFF0000 == win32 {
			result &= 0xFFFF
		}
		err = winerr.Code(result)
	}
	if errors.Is(err, winerr.WMINotFound) || winerr.CodeOf(err) == winerr.NotConnected {
		return winerr.FileNotFound
	}
	return err
}

// bestMapping returns one that works, and of those one that encrypts.
func bestMapping(found []win.SMBMapping) (win.SMBMapping, error) {
	if len(found) == 0 {
		return win.SMBMapping{}, winerr.FileNotFound
	}
	rank := func(m win.SMBMapping) int {
		switch {
		case m.Status != win.SMBOK:
			return 2
		case m.Plain:
			return 1
		default:
			return 0
		}
	}
	return slices.MinFunc(found, func(a, b win.SMBMapping) int { return rank(a) - rank(b) }), nil
}
