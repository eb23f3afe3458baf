package winapi

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

// configRet is CONFIGRET, how the functions of cfgmgr32.dll answer.
// https://learn.microsoft.com/windows-hardware/drivers/install/cm-status-codes
type configRet uint32

const crSuccess configRet = 0

// configErrors are Windows' codes for the answers that say something. Unlike
// CM_MapCrToWin32Err, for which a device node that is gone is an element that was not
// found, it says that the device is gone. CM_Locate_DevNode answers 0x1E for a bad id and 0x0D for no device (Wine's
// dlls/cfgmgr32/tests/cfgmgr32.c).
var configErrors = map[configRet]winerr.Code{
	0x03: winerr.InvalidParameter,   // CR_INVALID_POINTER
	0x04: winerr.InvalidParameter,   // CR_INVALID_FLAG
	0x05: winerr.NoSuchDevice,       // CR_INVALID_DEVNODE
	0x0D: winerr.NoSuchDevice,       // CR_NO_SUCH_DEVNODE
	0x1A: winerr.InsufficientBuffer, // CR_BUFFER_SMALL
	0x1E: winerr.InvalidName,        // CR_INVALID_DEVICE_ID
	0x21: winerr.NotReady,           // CR_DEVLOADER_NOT_READY
	0x24: winerr.NoSuchDevice,       // CR_DEVICE_NOT_THERE
	0x33: winerr.AccessDenied,       // CR_ACCESS_DENIED
	0x34: winerr.NotSupported,       // CR_CALL_NOT_IMPLEMENTED
}

// errGenFailure is ERROR_GEN_FAILURE, a device that does not work.
const errGenFailure winerr.Code = 31

// err returns nil for CR_SUCCESS, and a code of Windows otherwise.
func (ret configRet) err() error {
	if ret == crSuccess {
		return nil
	}
	if code, known := configErrors[ret]; known {
		return code
	}
	return errGenFailure
}
