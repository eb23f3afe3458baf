package winapi

import (
	"sync"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The function of golang.org/x/sys/windows hides that it did nothing, which is reported
// together with success.
//sys	adjustTokenPrivileges(token windows.Token, disableAll bool, privileges *windows.Tokenprivileges, size uint32, previous *windows.Tokenprivileges, required *uint32) (success bool, err error) [true] = advapi32.AdjustTokenPrivileges

// Privilege is a right that LocalSystem and administrators have, but that takes effect
// only when it is enabled.
// https://learn.microsoft.com/windows/win32/secauthz/privilege-constants
type Privilege struct{ enable func() error }

func newPrivilege(name string) Privilege {
	return Privilege{sync.OnceValue(func() error { return enablePrivilege(name) })}
}

// The privileges that calls enable.
var (
	// LoadDriverPrivilege is SE_LOAD_DRIVER_NAME, without which Reenumerate is refused.
	LoadDriverPrivilege = newPrivilege(loadDriver)
	// ManageVolumePrivilege is SE_MANAGE_VOLUME_NAME, for requests to file systems by
	// administrators other than LocalSystem.
	ManageVolumePrivilege = newPrivilege(manageVolume)
	// CreateSymbolicLinkPrivilege is SE_CREATE_SYMBOLIC_LINK_NAME, without which file
	// systems refuse to make symbolic links.
	CreateSymbolicLinkPrivilege = newPrivilege(createSymbolicLink)
)

// Enable enables the privilege for this process, once and for all. Where it is not held
// it fails, again and again at no cost.
func (p Privilege) Enable() error { return p.enable() }

// https://learn.microsoft.com/windows/win32/api/securitybaseapi/nf-securitybaseapi-adjusttokenprivileges
func enablePrivilege(name string) error {
	p, err := utf16Ptr(name)
	if err != nil {
		return err
	}
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	if err := windows.LookupPrivilegeValue(nil, p, &privileges.Privileges[0].Luid); err != nil {
		return Error(err)
	}
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token); err != nil {
		return Error(err)
	}
	defer token.Close()
	const notAllAssigned winerr.Code = 1300 // ERROR_NOT_ALL_ASSIGNED
	success, err := adjustTokenPrivileges(token, false, &privileges, 0, nil, nil)
	switch {
	case !success:
		return Error(err)
	case winerr.CodeOf(Error(err)) == notAllAssigned:
		return winerr.PrivilegeNotHeld
	default:
		return nil
	}
}
