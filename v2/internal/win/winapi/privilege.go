package winapi

// The privileges that the daemon keeps, by the names of
// https://learn.microsoft.com/windows/win32/secauthz/privilege-constants
const (
	backup             = "SeBackupPrivilege"
	changeNotify       = "SeChangeNotifyPrivilege"
	createGlobal       = "SeCreateGlobalPrivilege"
	createSymbolicLink = "SeCreateSymbolicLinkPrivilege"
	impersonate        = "SeImpersonatePrivilege"
	loadDriver         = "SeLoadDriverPrivilege"
	manageVolume       = "SeManageVolumePrivilege"
	restore            = "SeRestorePrivilege"
)

// RequiredPrivilege is a privilege that the daemon keeps, and why.
type RequiredPrivilege struct {
	Name     string
	Requests string // of our API
	Reason   string
}

// RequiredPrivileges returns the privileges that KeepPrivileges leaves the daemon: those that its own calls need, and
// those that Windows' providers for storage, SMB and iSCSI may use, because they act with the caller's token. Elevated
// administrators have all of them, and Microsoft's cmdlets make the same calls with no more. The process loses what
// makes LocalSystem worth an attack: to open any process, to make tokens, to act as a part of Windows, to own any file.
func RequiredPrivileges() []RequiredPrivilege {
	return []RequiredPrivilege{
		{backup, "FormatVolume, ResizeVolume", "the provider acts with the caller's token; the service swprv of Windows, which works on volumes too, lists it"},
		{changeNotify, "all that open a path", "NtCreateFile below directories that the daemon may not list; Windows never takes it from a service"},
		{createGlobal, "all that use WMI or iSCSI", "every service account has it enabled; MSiSCSI and swprv list it"},
		{createSymbolicLink, "CreateSymlink", "DeviceIoControl FSCTL_SET_REPARSE_POINT with IO_REPARSE_TAG_SYMLINK"},
		{impersonate, "all that use WMI or iSCSI", "every service account has it enabled; MSiSCSI and swprv list it"},
		{loadDriver, "Rescan", "CM_Reenumerate_DevNode"},
		{manageVolume, "ResizeVolume, FormatVolume", "DeviceIoControl FSCTL_EXTEND_VOLUME; MSFT_Volume.Format acts with the caller's token"},
		{restore, "FormatVolume, ResizeVolume", "as SeBackupPrivilege"},
	}
}
