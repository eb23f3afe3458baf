package winapi

import (
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// The function of golang.org/x/sys/windows hides that it did nothing, which is reported
// together with success (Wine's test_symbolic_link on Windows, dlls/kernel32/tests/file.c).
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
	privileges := windows.Tokenprivileges{PrivilegeCount: 1}
	privileges.Privileges[0].Attributes = windows.SE_PRIVILEGE_ENABLED
	var err error
	if privileges.Privileges[0].Luid, err = privilegeValue(name); err != nil {
		return err
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

// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-lookupprivilegevaluew
func privilegeValue(name string) (value windows.LUID, err error) {
	p, err := utf16Ptr(name)
	if err == nil {
		err = Error(windows.LookupPrivilegeValue(nil, p, &value))
	}
	return value, err
}

// KeepPrivileges takes all privileges from the process but RequiredPrivileges, until it ends. It returns those of them
// that the process does not have.
func KeepPrivileges() (missing []string, err error) {
	var token windows.Token
	if err := windows.OpenProcessToken(windows.CurrentProcess(), windows.TOKEN_ADJUST_PRIVILEGES|windows.TOKEN_QUERY, &token); err != nil {
		return nil, Error(err)
	}
	defer token.Close()
	const enough = 1 << 10 // Windows has less than forty privileges of 12 bytes
	buffer, err := grow(enough, nil, func(buffer []byte) (int, error) {
		var needed uint32
		return len(buffer), Error(windows.GetTokenInformation(token, windows.TokenPrivileges, &buffer[0], Length(buffer), &needed))
	})
	if err != nil {
		return nil, err
	}
	privileges := (*windows.Tokenprivileges)(unsafe.Pointer(&buffer[0]))
	held := privileges.AllPrivileges()
	var keep []windows.LUID
	for _, required := range RequiredPrivileges() {
		value, err := privilegeValue(required.Name)
		if err != nil || !slices.ContainsFunc(held, func(p windows.LUIDAndAttributes) bool { return p.Luid == value }) {
			missing = append(missing, required.Name)
			continue
		}
		keep = append(keep, value)
	}
	privileges.PrivilegeCount = 0 // those to remove come to the front
	for _, p := range held {
		if !slices.Contains(keep, p.Luid) {
			held[privileges.PrivilegeCount] = windows.LUIDAndAttributes{Luid: p.Luid, Attributes: windows.SE_PRIVILEGE_REMOVED}
			privileges.PrivilegeCount++
		}
	}
	if success, err := adjustTokenPrivileges(token, false, privileges, 0, nil, nil); !success {
		return missing, Error(err)
	}
	return missing, nil
}
