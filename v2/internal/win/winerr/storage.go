package winerr

import "strconv"

// StorageCode is what a method of a storage management class such as MSFT_Volume
// returns when it fails. The numbers overlap with those of Code and mean other things, so
// they have a type of their own.
//
// https://learn.microsoft.com/windows-hardware/drivers/storage/format-msft-volume
type StorageCode uint32

// The codes our logic looks at or the emulator gives.
const (
	StorageNotSupported     StorageCode = 1
	StorageInvalidParameter StorageCode = 5
	StorageInUse            StorageCode = 6
	StorageNoSpace          StorageCode = 40000
	StorageAccessDenied     StorageCode = 40001
	StorageCacheOutOfDate   StorageCode = 40003 // refresh and try again
	StorageIOError          StorageCode = 40004
	StorageDiskReadOnly     StorageCode = 41002
	StorageDiskOffline      StorageCode = 41003
	StorageSystemPartition  StorageCode = 42010
	StorageClusterSize      StorageCode = 43000
	StorageTooManyClusters  StorageCode = 43003
	StorageFileSystem       StorageCode = 43001
	StorageReadOnly         StorageCode = 43006
)

var storageCodes = map[StorageCode]meaning{
	StorageNotSupported:     {Unsupported, "the storage service does not support it"},
	2:                       {Internal, "the storage service gives no reason"},
	3:                       {Deadline, "the storage service gave up waiting"},
	4:                       {Internal, "the storage service failed"},
	StorageInvalidParameter: {Invalid, "a parameter is wrong"},
	StorageInUse:            {Busy, "another process has it open"},
	StorageNoSpace:          {NoSpace, "there is not enough space"},
	StorageAccessDenied:     {Denied, "access is denied"},
	40002:                   {Unavailable, "the storage service lacks resources"},
	StorageCacheOutOfDate:   {Unavailable, "the storage service has not seen the change yet"},
	StorageIOError:          {Internal, "the device reported an I/O error"},
	StorageDiskReadOnly:     {InUse, "the disk is read-only"},
	StorageDiskOffline:      {InUse, "the disk is offline"},
	41009:                   {Denied, "the system needs this disk"},
	StorageSystemPartition:  {Denied, "the system needs this volume"},
	StorageClusterSize:      {Invalid, "the cluster size is wrong"},
	StorageFileSystem:       {Unsupported, "the file system is not supported"},
	43002:                   {Unsupported, "the volume cannot be formatted quickly"},
	StorageTooManyClusters:  {Invalid, "the volume has too many clusters"},
	StorageReadOnly:         {InUse, "the volume is read-only"},
}

func (c StorageCode) Error() string {
	return storageCodes[c].describe("storage management error", strconv.FormatUint(uint64(c), 10))
}

// Kind is the class of the code; unknown codes are Internal.
func (c StorageCode) Kind() Kind { return storageCodes[c].kind }

// FailureClass names the class for package client/failure.
func (c StorageCode) FailureClass() string { return c.Kind().FailureClass() }

// Is matches the Kind and its counterpart in the standard library.
func (c StorageCode) Is(target error) bool { return c.Kind().Is(target) }

// LegacyFormatCode is what Win32_Volume.Format returns when it fails: numbers of its own
// again.
//
// https://learn.microsoft.com/previous-versions/windows/desktop/legacy/aa390432(v=vs.85)
type LegacyFormatCode uint32

// The codes, all there are.
const (
	LegacyFormatAccessDenied     LegacyFormatCode = 3
	LegacyFormatWriteProtected   LegacyFormatCode = 6
	LegacyFormatLockFailed       LegacyFormatCode = 7
	LegacyFormatIOError          LegacyFormatCode = 9
	LegacyFormatLabel            LegacyFormatCode = 10
	LegacyFormatNotMounted       LegacyFormatCode = 14
	LegacyFormatClustersTooSmall LegacyFormatCode = 15
	LegacyFormatTooManyClusters  LegacyFormatCode = 17
	LegacyFormatUnknown          LegacyFormatCode = 18
)

var legacyFormatCodes = map[LegacyFormatCode]meaning{
	1:                            {Unsupported, "the file system is not supported"},
	2:                            {Unsupported, "the medium cannot be formatted this way"},
	LegacyFormatAccessDenied:     {Denied, "access is denied"},
	4:                            {Cancelled, "it was cancelled"},
	5:                            {Internal, "it was cancelled too late"},
	LegacyFormatWriteProtected:   {InUse, "the volume is read-only"},
	LegacyFormatLockFailed:       {Busy, "another process has it open"},
	8:                            {Unsupported, "the volume cannot be formatted quickly"},
	LegacyFormatIOError:          {Internal, "the device reported an I/O error"},
	LegacyFormatLabel:            {Invalid, "the label is wrong"},
	11:                           {Unavailable, "the drive is empty"},
	12:                           {InUse, "the volume is too small"},
	13:                           {InUse, "the volume is too large"},
	LegacyFormatNotMounted:       {Unavailable, "the volume is not mounted"},
	LegacyFormatClustersTooSmall: {Invalid, "the cluster size is too small"},
	16:                           {Invalid, "the cluster size is too large"},
	LegacyFormatTooManyClusters:  {Invalid, "the volume has too many clusters"},
	LegacyFormatUnknown:          {Internal, "Windows gives no reason"},
}

func (c LegacyFormatCode) Error() string {
	return legacyFormatCodes[c].describe("Win32_Volume.Format error", strconv.FormatUint(uint64(c), 10))
}

// Kind is the class of the code; unknown codes are Internal.
func (c LegacyFormatCode) Kind() Kind { return legacyFormatCodes[c].kind }

// FailureClass names the class for package client/failure.
func (c LegacyFormatCode) FailureClass() string { return c.Kind().FailureClass() }

// Is matches the Kind and its counterpart in the standard library.
func (c LegacyFormatCode) Is(target error) bool { return c.Kind().Is(target) }

type meaning struct {
	kind Kind
	text string
}

// describe gives the text, if there is one, and always the number.
func (m meaning) describe(what, number string) string {
	if m.text == "" {
		return what + " " + number
	}
	return m.text + " (" + what + " " + number + ")"
}
