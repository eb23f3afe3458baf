// Package pipe makes the listeners of the servers: named pipes on Windows, Unix sockets
// on other systems.
//
// A client can do everything that CSI Proxy can do as administrator. So a listener
// admits few accounts, and never shares its endpoint with another process: a second
// instance fails with an error that names the first.
package pipe

import (
	"context"
	"net"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
)

// Config says how to listen. The zero Config suits most users.
type Config struct {
	// SecurityDescriptor says who may connect to a named pipe, in the
	// Security Descriptor Definition Language. Empty means
	// DefaultSecurityDescriptor. Unix sockets ignore it: they admit the user
	// who runs the server, and root.
	//
	// https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format
	SecurityDescriptor string
}

// Rights to a pipe.
// https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights
const (
	// connect is reading, writing and SYNCHRONIZE, without FILE_CREATE_PIPE_INSTANCE (0x4), which GA and GW include: who
	// has that right can serve the pipe in our place, and receive the passwords of shares.
	connect = "0x12019b"
	// ownerRights limits the owner of the pipe, which is Administrators if LocalSystem creates it. Otherwise owners can
	// always change the access list. https://learn.microsoft.com/windows/win32/secauthz/ace-strings
	ownerRights = "(A;;RC;;;S-1-3-4)"

	localSystem = "SY"
)

// DefaultSecurityDescriptor lets LocalSystem and administrators of this machine connect.
// ContainerAdministrator of a process-isolated container is one of them, so existing
// drivers can connect. ContainerUser is not. To admit it, add
//
//	(A;;0x12019b;;;S-1-5-93-2-2)
//
// Only the account of the daemon can make instances of the pipe: this is the descriptor of a daemon that is
// LocalSystem, and defaultFor that of another.
//
// Network logons (NU) are not denied: administrators on SSH-key and WinRM sessions have
// that SID (https://github.com/PowerShell/Win32-OpenSSH/issues/1638). The pipe itself
// rejects clients of other machines.
const DefaultSecurityDescriptor = "D:P" + // an access list that inherits nothing
	"(A;;GA;;;" + localSystem + ")" + // the daemon itself; HostProcess containers connect
	"(A;;" + connect + ";;;BA)" + // Administrators: operators and, in containers, ContainerAdministrator
	ownerRights

// defaultFor is the default descriptor of a daemon that runs as an account.
func defaultFor(sid string) string {
	if sid == sddl.LocalSystem {
		return DefaultSecurityDescriptor
	}
	return "D:P(A;;GA;;;" + sid + ")(A;;" + connect + ";;;" + localSystem + ")(A;;" + connect + ";;;BA)" + ownerRights
}

const listenOp = "listen on"

// Listen listens on the endpoint at path; ctx does not limit the listener's life. Every
// error is a *winerr.Error: Exists if the endpoint already has an owner, Denied if this
// user may not create it, Invalid if path or cfg are invalid.
//
// On Windows path is the name of a pipe. The pipe rejects remote clients.
//
// On other systems path is a Unix socket. Listen creates its directory, for this user
// only, if it does not exist. It replaces a socket that a dead server left behind.
// Closing the listener removes the socket.
func Listen(ctx context.Context, path string, cfg Config) (net.Listener, error) {
	return listen(ctx, path, cfg)
}

// PeerPID returns the process at the other end of a connection that a listener of this
// package accepted. The id is the host's, also for a process in a container. ok is false
// if the process is unknown, as on every system but Windows and Linux.
func PeerPID(conn net.Conn) (pid int, ok bool) {
	return peerPID(conn)
}

// Describe returns the name of a process's program, and its user: the SID on Windows, the number on other
// systems. What the system does not report is empty. Several processes can have the same name, and
// every process can choose its own.
func Describe(pid int) (name, user string) {
	if pid <= 0 {
		return "", ""
	}
	return describe(pid)
}

// ValidateSecurityDescriptor returns an error if Listen would refuse sddl: if it is
// malformed, has no access list and so admits everyone, or has an empty list and so
// admits no client. On other systems than Windows the result is nil.
func ValidateSecurityDescriptor(sddl string) error {
	return validateSecurityDescriptor(sddl)
}

// Owner returns the process that serves the endpoint at path. ok is false if no process
// does, or the system does not know it.
func Owner(ctx context.Context, path string) (pid int, ok bool) {
	id, err := owner(ctx, path)
	return int(id), err == nil
}
