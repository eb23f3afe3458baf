package winerr

// The statuses of the iSCSI initiator that our logic looks at, or the emulator gives. Names are Windows' own with ISCSI in place of ISDSC. They
// are Codes, because the same functions also answer Win32 codes and HRESULTs, and the numbers
// of none of them collide.
//
// https://learn.microsoft.com/windows/win32/iscsidisc/iscsi-discovery-library-api-reference
// and iscsierr.h of the Windows SDK.
const (
	ISCSIConnectionFailed      Code = 0xEFFF0003
	ISCSIAuthenticationFailure Code = 0xEFFF0009
	ISCSINotFound              Code = 0xEFFF000B
	ISCSIInvalidSessionID      Code = 0xEFFF001C
	ISCSISessionBusy           Code = 0xEFFF001F
	ISCSITransportError        Code = 0xEFFF0024
	ISCSITargetNotFound        Code = 0xEFFF0029
	ISCSIPortalAlreadyExists   Code = 0xEFFF0032
	ISCSINoAuthInfo            Code = 0xEFFF0034
	ISCSIServiceDidNotRespond  Code = 0xEFFF0039
	ISCSIServiceNotRunning     Code = 0xEFFF003E
	ISCSITargetAlreadyLoggedIn Code = 0xEFFF003F
	ISCSIDeviceBusy            Code = 0xEFFF0040
	ISCSIPortalNotFound        Code = 0xEFFF0043
	ISCSIInvalidCHAPSecret     Code = 0xEFFF004A
	ISCSIBufferTooSmall        Code = 0xEFFF0054
	InsufficientBufferHRESULT  Code = 0x8007007A // HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER)
)

// iscsiCodes says of these what codes says of the others.
var iscsiCodes = map[Code]meaning{
	0xEFFF0002:                 {Unavailable, "the login failed"},
	ISCSIConnectionFailed:      {Unavailable, "the connection to the portal failed"},
	ISCSIAuthenticationFailure: {Denied, "the target refuses the credentials"},
	0xEFFF000A:                 {Denied, "the target does not admit this initiator"},
	ISCSINotFound:              {NotFound, "the portal knows no such target"},
	0xEFFF000C:                 {NotFound, "the target was removed"},
	0xEFFF0012:                 {Unavailable, "the target reported an error"},
	0xEFFF0013:                 {Unavailable, "the target is not available"}, // of the target, not of this machine
	0xEFFF0014:                 {Unavailable, "the target lacks resources"},
	0xEFFF0016:                 {Exists, "the session already exists"},
	ISCSIInvalidSessionID:      {NotFound, "there is no such session"},
	ISCSISessionBusy:           {Busy, "the session is busy"},
	0xEFFF0022:                 {Denied, "the target refuses the login"},
	ISCSITransportError:        {Unavailable, "the connection to the target was lost"},
	ISCSITargetNotFound:        {NotFound, "the target is not known"},
	0xEFFF002A:                 {Denied, "the user name or secret is wrong"},
	ISCSIPortalAlreadyExists:   {Exists, "the portal already exists"},
	0xEFFF0033:                 {Exists, "the address already exists"},
	ISCSINoAuthInfo:            {Denied, "this node has no secret for it"},
	ISCSIServiceDidNotRespond:  {InUse, "the service MSiSCSI does not respond"},
	ISCSIServiceNotRunning:     {InUse, "the service MSiSCSI is not running"},
	ISCSITargetAlreadyLoggedIn: {Exists, "the target has already been logged in via an iSCSI session"},
	ISCSIDeviceBusy:            {Busy, "a disk of the session is in use"},
	ISCSIPortalNotFound:        {NotFound, "the portal is not known"},
	0xAFFF0048:                 {Invalid, "the CHAP secret is short"}, // a warning
	ISCSIInvalidCHAPSecret:     {Denied, "the CHAP secret is not valid"},
	0xEFFF004B:                 {Denied, "the CHAP secret of the target is not valid"},
	0xEFFF004C:                 {Denied, "the CHAP secret of this node is not valid"},
	0xEFFF004D:                 {Denied, "the CHAP user name is not valid"},
	0xEFFF004E:                 {Denied, "the target does not take this authentication"},
	0xEFFF0051:                 {Invalid, "it is not an iSCSI name"},
	ISCSIBufferTooSmall:        {Internal, "the buffer is too small"},
	0xEFFF0056:                 {Invalid, "a parameter is wrong"},
	0xEFFF005D:                 {NotFound, "the device was not found"},
	0xEFFF005F:                 {Unavailable, "the name of the portal cannot be resolved"},
	0xEFFF0060:                 {Unavailable, "there is no connection to the target"},
	0xEFFF0062:                 {Busy, "a connection is being removed"},
	0xEFFF0065:                 {Denied, "a group policy does not allow it"},
	0xEFFF0068:                 {Invalid, "it is not the address of a host"},
	InsufficientBufferHRESULT:  {Internal, "the buffer is too small"},
}

// IsBufferTooSmall reports whether a function of the initiator says that a list did not fit.
// The functions are not of one mind about how to say so, and LoginIScsiTargetW says it now and
// then without reason.
func IsBufferTooSmall(err error) bool {
	switch CodeOf(err) {
	case InsufficientBuffer, InsufficientBufferHRESULT, ISCSIBufferTooSmall, MoreData:
		return true
	default:
		return false
	}
}
