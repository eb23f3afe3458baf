package winerr

import (
	"fmt"
	"strconv"
)

// Code is a Win32 error code. It is an error on every OS, so the emulated
// machine and the real one fail alike.
//
// https://learn.microsoft.com/windows/win32/debug/system-error-codes
type Code uint32

// The codes our logic looks at or the emulator gives. Names are Windows' own
// without the ERROR_ prefix.
const (
	InvalidFunction         Code = 1
	FileNotFound            Code = 2
	PathNotFound            Code = 3
	AccessDenied            Code = 5
	NoMoreFiles             Code = 18
	WriteProtect            Code = 19
	NotReady                Code = 21
	CRC                     Code = 23
	WriteFault              Code = 29
	ReadFault               Code = 30
	BadLength               Code = 24
	GenFailure              Code = 31
	SharingViolation        Code = 32
	NotSupported            Code = 50
	RemoteNotList           Code = 51
	BadNetPath              Code = 53
	NetworkBusy             Code = 54
	DevNotExist             Code = 55
	BadNetResp              Code = 58
	UnexpectedNetErr        Code = 59
	NetnameDeleted          Code = 64
	NetworkAccessDenied     Code = 65
	BadDevType              Code = 66
	BadNetName              Code = 67
	TooManyConnections      Code = 71
	AlreadyAssigned         Code = 85
	InvalidPassword         Code = 86
	InvalidParameter        Code = 87
	DiskFull                Code = 112
	SemTimeout              Code = 121
	InsufficientBuffer      Code = 122
	InvalidName             Code = 123
	DirNotEmpty             Code = 145
	BadPathname             Code = 161
	BusyCode                Code = 170
	AlreadyExists           Code = 183
	FilenameExcedRange      Code = 206
	MoreData                Code = 234
	WaitTimeout             Code = 258
	Directory               Code = 267
	NoSuchDevice            Code = 433
	DeviceHardwareError     Code = 483
	UnrecognizedVolume      Code = 1005
	FileInvalid             Code = 1006
	IODevice                Code = 1117
	DeviceNotConnected      Code = 1167
	DeviceAlreadyRemembered Code = 1202
	NoNetOrBadPath          Code = 1203
	CredentialConflict      Code = 1219
	NoNetwork               Code = 1222
	ConnectionRefused       Code = 1225
	NetworkUnreachable      Code = 1231
	HostUnreachable         Code = 1232
	ProtocolUnreachable     Code = 1233
	PortUnreachable         Code = 1234
	ConnectionAborted       Code = 1236
	LoginWorkstation        Code = 1240
	DowngradeDetected       Code = 1265
	GuestLogonBlocked       Code = 1272
	NoLogonServers          Code = 1311
	NoSuchLogonSession      Code = 1312
	PrivilegeNotHeld        Code = 1314
	LogonFailure            Code = 1326
	AccountRestriction      Code = 1327
	InvalidLogonHours       Code = 1328
	InvalidWorkstation      Code = 1329
	PasswordExpired         Code = 1330
	AccountDisabled         Code = 1331
	TooManyContextIDs       Code = 1384
	LogonTypeNotGranted     Code = 1385
	FileCorrupt             Code = 1392
	DiskCorrupt             Code = 1393
	WrongTargetName         Code = 1396
	MutualAuthFailed        Code = 1397
	TimeSkew                Code = 1398
	Timeout                 Code = 1460
	SymlinkClassDisabled    Code = 1463
	DeviceRemoved           Code = 1617
	NoTrustSecret           Code = 1786
	NoTrustAccount          Code = 1787
	TrustedDomainFailure    Code = 1788
	TrustFailure            Code = 1789
	AccountExpired          Code = 1793
	PasswordMustChange      Code = 1907
	AccountLockedOut        Code = 1909
	CantResolveFilename     Code = 1921
	WorkstationNotStarted   Code = 2138
	NotConnected            Code = 2250
	NetTimeSkew             Code = 2457
	NotAReparsePoint        Code = 4390
	InvalidReparseData      Code = 4392
	ReparseTagInvalid       Code = 4393
	ReparsePointEncounter   Code = 4395
	HostDown                Code = 10064 // WSAEHOSTDOWN
)

// RefusesAccount reports whether a server has refused a user or a password. Servers count some of these refusals, and lock
// the account after a few.
func (c Code) RefusesAccount() bool {
	switch c {
	case InvalidPassword, LogonFailure, PasswordExpired, AccountDisabled, PasswordMustChange, AccountLockedOut:
		return true
	default:
		return false
	}
}

// Those of the service manager. Wine's dlls/advapi32/tests/service.c shows when Windows returns 1053, 1058, 1062 and
// 1072.
const (
	DependentServicesRunning Code = 1051
	InvalidServiceControl    Code = 1052
	ServiceRequestTimeout    Code = 1053
	ServiceDatabaseLocked    Code = 1055
	ServiceAlreadyRunning    Code = 1056
	ServiceDisabled          Code = 1058
	ServiceDoesNotExist      Code = 1060
	ServiceCannotAcceptCtrl  Code = 1061
	ServiceNotActive         Code = 1062
	ServiceSpecificError     Code = 1066
	ServiceDependencyFail    Code = 1068
	ServiceLogonFailed       Code = 1069
	ServiceMarkedForDelete   Code = 1072
	ServiceDependencyDeleted Code = 1075
	ShutdownInProgress       Code = 1115
)

// The HRESULTs among them. They do not collide with the others, which have 16 bits.
const (
	WMINotFound Code = 0x80041002 // WBEM_E_NOT_FOUND: no such instance, or not yet
	FVELocked   Code = 0x80310000 // FVE_E_LOCKED_VOLUME: BitLocker
)

// codes gives each known code its usual Kind and a short text in lower case. Those that only people read are numbers.
// Where the same code means different things for different objects, the caller
// that knows the object says so with New or As.
var codes = map[Code]meaning{
	InvalidFunction:         {Unsupported, "the device does not know this request"},
	FileNotFound:            {NotFound, "it does not exist"},
	PathNotFound:            {NotFound, "a directory on the way to it does not exist"},
	AccessDenied:            {Denied, "access is denied"},
	8:                       {NoSpace, "Windows has not enough memory"},
	NoMoreFiles:             {NotFound, "there are no more files"},
	WriteProtect:            {InUse, "the disk or volume is read-only"},
	NotReady:                {Unavailable, "the device is not ready"},
	CRC:                     {Internal, "data error (cyclic redundancy check)"},
	WriteFault:              {Internal, "the system cannot write to the device"},
	ReadFault:               {Internal, "the system cannot read from the device"},
	BadLength:               {Invalid, "the length of the request is wrong"},
	GenFailure:              {Internal, "the device failed without saying why"},
	SharingViolation:        {Busy, "another process has it open"},
	33:                      {Busy, "another process has locked a part of it"},
	NotSupported:            {Unsupported, "the request is not supported"},
	RemoteNotList:           {Unavailable, "the server does not answer"},
	52:                      {Unavailable, "the network has another machine of that name"},
	BadNetPath:              {Unavailable, "the server cannot be reached"},
	NetworkBusy:             {Unavailable, "the network is busy"},
	DevNotExist:             {NotFound, "the device is gone"},
	56:                      {Unavailable, "too many requests to the server are in progress"},
	BadNetResp:              {Unavailable, "the server sent an invalid answer"},
	UnexpectedNetErr:        {Unavailable, "the network failed unexpectedly"},
	NetnameDeleted:          {Unavailable, "the connection to the server was lost"},
	NetworkAccessDenied:     {Denied, "network access is denied"},
	BadDevType:              {Invalid, "the path is not that of a share of files"},
	BadNetName:              {NotFound, "the server has no such share"},
	TooManyConnections:      {Unavailable, "the server allows no more connections"},
	80:                      {Exists, "it already exists"},
	AlreadyAssigned:         {Exists, "a connection to it exists"},
	InvalidPassword:         {Denied, "the password is wrong"},
	InvalidParameter:        {Invalid, "a parameter is wrong"},
	DiskFull:                {NoSpace, "there is not enough space on the disk"},
	SemTimeout:              {Deadline, "Windows gave up waiting"},
	InsufficientBuffer:      {Internal, "the buffer is too small"},
	InvalidName:             {Invalid, "the name is malformed"},
	DirNotEmpty:             {InUse, "the directory is not empty"},
	BadPathname:             {Invalid, "the path is malformed"},
	BusyCode:                {Busy, "the object is busy"},
	AlreadyExists:           {Exists, "it already exists"},
	FilenameExcedRange:      {Invalid, "the name is too long"},
	MoreData:                {Internal, "there is more data than the buffer holds"},
	WaitTimeout:             {Busy, "another process has it"},
	Directory:               {Invalid, "it is not a directory"},
	NoSuchDevice:            {NotFound, "the device is gone"},
	DeviceHardwareError:     {Internal, "the device reported a hardware error"},
	UnrecognizedVolume:      {InUse, "the volume has no recognised file system"},
	FileInvalid:             {Internal, "the volume was changed from outside"},
	IODevice:                {Internal, "the device reported an I/O error"},
	DeviceNotConnected:      {NotFound, "the device is gone"},
	DeviceAlreadyRemembered: {Exists, "Windows remembers an earlier connection to it"},
	NoNetOrBadPath:          {Unavailable, "no network provider accepted the path"},
	CredentialConflict:      {InUse, "Windows holds another connection to this server, with other credentials"},
	NoNetwork:               {Unavailable, "there is no network"},
	ConnectionRefused:       {Unavailable, "the server refuses connections"},
	NetworkUnreachable:      {Unavailable, "the network cannot be reached"},
	HostUnreachable:         {Unavailable, "the server cannot be reached"},
	ProtocolUnreachable:     {Unavailable, "the server does not speak the protocol"},
	PortUnreachable:         {Unavailable, "nothing answers at the port of the server"},
	ConnectionAborted:       {Unavailable, "the connection to the server was aborted"},
	LoginWorkstation:        {Denied, "the account may not log on from this node"},
	DowngradeDetected:       {Denied, "a downgrade attack was detected, or no domain controller can be reached"},
	GuestLogonBlocked:       {Denied, "this node's policy forbids guest access to shares"},
	NoLogonServers:          {Unavailable, "no domain controller can be reached to check the credentials"},
	NoSuchLogonSession:      {Invalid, "Windows has no logon session for the user name"},
	PrivilegeNotHeld:        {Denied, "a required privilege is not held"},
	LogonFailure:            {Denied, "the user name or password is wrong"},
	AccountRestriction:      {Denied, "the account is restricted; an empty password or the time of day may be why"},
	InvalidLogonHours:       {Denied, "the account may not log on at this time"},
	InvalidWorkstation:      {Denied, "the account may not log on from this node"},
	PasswordExpired:         {Denied, "the password of the account has expired"},
	AccountDisabled:         {Denied, "the account is disabled"},
	TooManyContextIDs:       {Denied, "the account is in too many groups"},
	LogonTypeNotGranted:     {Denied, "the account may not log on over the network"},
	FileCorrupt:             {Internal, "the file or directory is corrupted and unreadable"},
	DiskCorrupt:             {Internal, "the disk structure is corrupted and unreadable"},
	WrongTargetName:         {Denied, "the server is not the one that the domain knows by this name"},
	MutualAuthFailed:        {Denied, "the server could not prove who it is"},
	TimeSkew:                {Denied, "the clocks of the node and of the server differ too much"},
	1450:                    {NoSpace, "Windows has not enough system resources"},
	1455:                    {NoSpace, "the paging file is too small"},
	Timeout:                 {Deadline, "Windows gave up waiting"},
	SymlinkClassDisabled:    {InUse, "symbolic links of this type are disabled on this node"},
	DeviceRemoved:           {NotFound, "the device was removed"},
	NoTrustSecret:           {Denied, "the node has no trust secret for its domain"},
	NoTrustAccount:          {Denied, "the domain has no account for the node"},
	TrustedDomainFailure:    {Denied, "the trust between the node's domain and that of the user has failed"},
	TrustFailure:            {Denied, "the trust between the node and its domain has failed"},
	AccountExpired:          {Denied, "the account has expired"},
	1816:                    {NoSpace, "a quota of Windows is used up"},
	PasswordMustChange:      {Denied, "the password of the account must be changed before it can be used"},
	AccountLockedOut:        {Denied, "the account is locked"},
	CantResolveFilename:     {InUse, "its links are broken or form a loop"},
	WorkstationNotStarted:   {Unavailable, "the Workstation service is not running"},
	NotConnected:            {NotFound, "there is no such connection"},
	NetTimeSkew:             {Denied, "the clocks of the node and of the server differ too much"},
	NotAReparsePoint:        {NotFound, "it is not a link"},
	InvalidReparseData:      {Internal, "the data of the link is malformed"},
	ReparseTagInvalid:       {Internal, "the tag of the link is invalid"},
	ReparsePointEncounter:   {Denied, "there is a link in the path"},
	HostDown:                {Unavailable, "the server is down"},
	WMINotFound:             {NotFound, "the storage service does not know it"},
	FVELocked:               {InUse, "the volume is locked by BitLocker"},

	DependentServicesRunning: {InUse, "services that depend on it are running"},
	InvalidServiceControl:    {InUse, "the service does not accept this request"},
	ServiceRequestTimeout:    {Deadline, "the service did not answer in time, or its process ended at once"},
	ServiceDatabaseLocked:    {Busy, "the list of services is locked"},
	ServiceAlreadyRunning:    {Exists, "the service is running already"},
	ServiceDisabled:          {InUse, "the service is disabled"},
	ServiceDoesNotExist:      {NotFound, "there is no such service"},
	ServiceCannotAcceptCtrl:  {Busy, "the service is starting or stopping"},
	ServiceNotActive:         {InUse, "the service is not running"},
	ServiceSpecificError:     {Internal, "the service reported an error of its own"},
	1067:                     {Internal, "its process ended unexpectedly"},
	ServiceDependencyFail:    {InUse, "a service that it depends on did not start"},
	ServiceLogonFailed:       {InUse, "the account of the service cannot log on"},
	ServiceMarkedForDelete:   {InUse, "the service is about to be deleted"},
	ServiceDependencyDeleted: {InUse, "a service that it depends on is not installed"},
	1077:                     {InUse, "it has not been started since the start of the machine"},
	ShutdownInProgress:       {Unavailable, "the machine is shutting down"},
}

// Error gives a short text and always the number: it is what operators search for.
func (c Code) Error() string {
	if c >= 0x80000000 { // an HRESULT, which people write so
		return c.meaning().describe("Windows error", fmt.Sprintf("%#08x", uint32(c)))
	}
	return c.meaning().describe("Windows error", strconv.FormatUint(uint64(c), 10))
}

func (c Code) meaning() meaning {
	if m, ok := codes[c]; ok {
		return m
	}
	return iscsiCodes[c]
}

// Kind is the usual class of the code; unknown codes are Internal.
func (c Code) Kind() Kind { return c.meaning().kind }

// FailureClass names the usual class for package client/failure.
func (c Code) FailureClass() string { return c.Kind().FailureClass() }

// WindowsCode is the number, for package client/failure.
func (c Code) WindowsCode() uint32 { return uint32(c) }

// Is lets errors.Is compare a bare Code with a Kind, with the standard library's
// error of the same meaning, and on Windows with a syscall.Errno.
func (c Code) Is(target error) bool { return c.Kind().Is(target) || c.isErrno(target) }
