package winapi

// The privileges our calls need, by the names of
// https://learn.microsoft.com/windows/win32/secauthz/privilege-constants
const (
	changeNotify       = "SeChangeNotifyPrivilege"
	createSymbolicLink = "SeCreateSymbolicLinkPrivilege"
	loadDriver         = "SeLoadDriverPrivilege"
	manageVolume       = "SeManageVolumePrivilege"
)

// RequiredPrivilege is a privilege, and what fails without it.
type RequiredPrivilege struct {
	Name     string
	Requests string // of our API
	Call     string // of Windows
}

// RequiredPrivileges returns the privileges the daemon needs. A service that keeps no others loses
// what makes LocalSystem worth an attack: to open any process, to act as any user, to make tokens, to
// read and write any file.
func RequiredPrivileges() []RequiredPrivilege {
	return []RequiredPrivilege{
		{changeNotify, "all that open a path", "NtCreateFile below directories that the daemon may not list; Windows never removes it"},
		{createSymbolicLink, "CreateSymlink", "DeviceIoControl FSCTL_SET_REPARSE_POINT with IO_REPARSE_TAG_SYMLINK"},
		{loadDriver, "Rescan", "CM_Reenumerate_DevNode"},
		{manageVolume, "ResizeVolume, FormatVolume", "DeviceIoControl FSCTL_EXTEND_VOLUME; MSFT_Volume.Format acts with the caller's token"},
	}
}
