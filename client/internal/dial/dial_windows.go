package dial

import (
	"context"
	"errors"
	"net"
	"unsafe"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// Owners of the daemon's pipes. The token of LocalSystem names Administrators as the owner of
// what it creates. Other accounts cannot give an object to them without SeRestorePrivilege. See
// https://learn.microsoft.com/windows/win32/secauthz/well-known-sids
const (
	localSystem    = "S-1-5-18"
	administrators = "S-1-5-32-544"
)

// dial opens the pipe at SECURITY_ANONYMOUS, go-winio's default, so that a server
// that has taken the name unlawfully cannot act in the client's name, and reads the
// owner before the first byte, so that such a server gets no password. See
// https://learn.microsoft.com/windows/win32/ipc/impersonating-a-named-pipe-client
func dial(ctx context.Context, path string, owners []string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, pipeName(path))
	if err != nil {
		return nil, err
	}
	if err := checkPipe(conn, owners); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// checkPipe asks the open handle, because the name can belong to another pipe a moment later. All instances of a pipe
// have the owner of the first, so this proves who made the name; that the same account serves this instance is up to
// the pipe's access list, and that of csi-proxy lets no other make instances.
// GENERIC_READ, which go-winio asks for, includes READ_CONTROL. See
// https://learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-getsecurityinfo
func checkPipe(conn net.Conn, owners []string) error {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return errors.New("the connection has no handle whose owner could be read")
	}
	descriptor, err := windows.GetSecurityInfo(windows.Handle(file.Fd()), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return err
	}
	token := windows.GetCurrentProcessToken()
	user, err := token.GetTokenUser()
	if err != nil {
		return err
	}
	own, err := defaultOwner(token)
	if err != nil {
		return err
	}
	return checkOwner("the pipe", owner.String(), accountName, []string{localSystem, administrators, user.User.Sid.String(), own}, owners)
}

// defaultOwner returns the owner of what a process with this token creates: its user, or
// Administrators. Under Wine it is a group of its own. See
// https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-token_owner
func defaultOwner(token windows.Token) (string, error) {
	var owner struct {
		sid    *windows.SID
		buffer [68]byte // SECURITY_MAX_SID_SIZE
	}
	size := uint32(unsafe.Sizeof(owner))
	if err := windows.GetTokenInformation(token, windows.TokenOwner, (*byte)(unsafe.Pointer(&owner)), size, &size); err != nil {
		return "", err
	}
	return owner.sid.String(), nil
}

func accountName(sid string) string {
	parsed, err := windows.StringToSid(sid)
	if err != nil {
		return ""
	}
	account, domain, _, err := parsed.LookupAccount("")
	if err != nil {
		return ""
	}
	return domain + `\` + account
}
