package winerr

// The statuses of the iSCSI initiator that our logic looks at, the emulator gives, or an
// operator should be able to read. Names are Windows' own with ISCSI in place of ISDSC. They
// are Codes, because the same functions also answer Win32 codes and HRESULTs, and the numbers
// of none of them collide.
//
// https://learn.microsoft.com/windows/win32/iscsidisc/iscsi-discovery-library-api-reference
// and iscsierr.h of the Windows SDK.
const (
	ISCSILoginFailed             Code = 0xEFFF0002
	ISCSIConnectionFailed        Code = 0xEFFF0003
	ISCSIAuthenticationFailure   Code = 0xEFFF0009
	ISCSIAuthorizationFailure    Code = 0xEFFF000A
	ISCSINotFound                Code = 0xEFFF000B
	ISCSITargetRemoved           Code = 0xEFFF000C
	ISCSITargetError             Code = 0xEFFF0012
	ISCSIServiceUnavailable      Code = 0xEFFF0013 // of the target, not of this machine
	ISCSIOutOfResources          Code = 0xEFFF0014
	ISCSISessionAlreadyExists    Code = 0xEFFF0016
	ISCSIInvalidSessionID        Code = 0xEFFF001C
	ISCSISessionBusy             Code = 0xEFFF001F
	ISCSILogonFailed             Code = 0xEFFF0022
	ISCSITransportError          Code = 0xEFFF0024
	ISCSITargetNotFound          Code = 0xEFFF0029
	ISCSILoginUserInfoBad        Code = 0xEFFF002A
	ISCSIPortalAlreadyExists     Code = 0xEFFF0032
	ISCSIAddressAlreadyExists    Code = 0xEFFF0033
	ISCSINoAuthInfo              Code = 0xEFFF0034
	ISCSIServiceDidNotRespond    Code = 0xEFFF0039
	ISCSIServiceNotRunning       Code = 0xEFFF003E
	ISCSITargetAlreadyLoggedIn   Code = 0xEFFF003F
	ISCSIDeviceBusy              Code = 0xEFFF0040
	ISCSIPortalNotFound          Code = 0xEFFF0043
	ISCSIShortCHAPSecret         Code = 0xAFFF0048 // a warning
	ISCSIInvalidCHAPSecret       Code = 0xEFFF004A
	ISCSIInvalidTargetSecret     Code = 0xEFFF004B
	ISCSIInvalidInitiatorSecret  Code = 0xEFFF004C
	ISCSIInvalidCHAPUser         Code = 0xEFFF004D
	ISCSIInvalidAuthType         Code = 0xEFFF004E
	ISCSIInvalidName             Code = 0xEFFF0051
	ISCSIBufferTooSmall          Code = 0xEFFF0054
	ISCSIInvalidParameter        Code = 0xEFFF0056
	ISCSIDeviceNotFound          Code = 0xEFFF005D
	ISCSIDNSNameUnresolved       Code = 0xEFFF005F
	ISCSINoConnection            Code = 0xEFFF0060
	ISCSIRemoveConnection        Code = 0xEFFF0062
	ISCSIRestrictedByGroupPolicy Code = 0xEFFF0065
	ISCSIInvalidHost             Code = 0xEFFF0068
	InsufficientBufferHRESULT    Code = 0x8007007A // HRESULT_FROM_WIN32(ERROR_INSUFFICIENT_BUFFER)
)

// iscsiCodes says of these what codes says of the others.
var iscsiCodes = map[Code]meaning{
	ISCSILoginFailed:             {Unavailable, "the login failed"},
	ISCSIConnectionFailed:        {Unavailable, "the connection to the portal failed"},
	ISCSIAuthenticationFailure:   {Denied, "the target refuses the credentials"},
	ISCSIAuthorizationFailure:    {Denied, "the target does not admit this initiator"},
	ISCSINotFound:                {NotFound, "the portal knows no such target"},
	ISCSITargetRemoved:           {NotFound, "the target was removed"},
	ISCSITargetError:             {Unavailable, "the target reported an error"},
	ISCSIServiceUnavailable:      {Unavailable, "the target is not available"},
	ISCSIOutOfResources:          {Unavailable, "the target lacks resources"},
	ISCSISessionAlreadyExists:    {Exists, "the session already exists"},
	ISCSIInvalidSessionID:        {NotFound, "there is no such session"},
	ISCSISessionBusy:             {Busy, "the session is busy"},
	ISCSILogonFailed:             {Denied, "the target refuses the login"},
	ISCSITransportError:          {Unavailable, "the connection to the target was lost"},
	ISCSITargetNotFound:          {NotFound, "the target is not known"},
	ISCSILoginUserInfoBad:        {Denied, "the user name or secret is wrong"},
	ISCSIPortalAlreadyExists:     {Exists, "the portal already exists"},
	ISCSIAddressAlreadyExists:    {Exists, "the address already exists"},
	ISCSINoAuthInfo:              {Denied, "this node has no secret for it"},
	ISCSIServiceDidNotRespond:    {InUse, "the service MSiSCSI does not respond"},
	ISCSIServiceNotRunning:       {InUse, "the service MSiSCSI is not running"},
	ISCSITargetAlreadyLoggedIn:   {Exists, "the target has already been logged in via an iSCSI session"},
	ISCSIDeviceBusy:              {Busy, "a disk of the session is in use"},
	ISCSIPortalNotFound:          {NotFound, "the portal is not known"},
	ISCSIShortCHAPSecret:         {Invalid, "the CHAP secret is short"},
	ISCSIInvalidCHAPSecret:       {Denied, "the CHAP secret is not valid"},
	ISCSIInvalidTargetSecret:     {Denied, "the CHAP secret of the target is not valid"},
	ISCSIInvalidInitiatorSecret:  {Denied, "the CHAP secret of this node is not valid"},
	ISCSIInvalidCHAPUser:         {Denied, "the CHAP user name is not valid"},
	ISCSIInvalidAuthType:         {Denied, "the target does not take this authentication"},
	ISCSIInvalidName:             {Invalid, "it is not an iSCSI name"},
	ISCSIBufferTooSmall:          {Internal, "the buffer is too small"},
	ISCSIInvalidParameter:        {Invalid, "a parameter is wrong"},
	ISCSIDeviceNotFound:          {NotFound, "the device was not found"},
	ISCSIDNSNameUnresolved:       {Unavailable, "the name of the portal cannot be resolved"},
	ISCSINoConnection:            {Unavailable, "there is no connection to the target"},
	ISCSIRemoveConnection:        {Busy, "a connection is being removed"},
	ISCSIRestrictedByGroupPolicy: {Denied, "a group policy does not allow it"},
	ISCSIInvalidHost:             {Invalid, "it is not the address of a host"},
	InsufficientBufferHRESULT:    {Internal, "the buffer is too small"},
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
