// Package pipe makes the listeners that the servers accept connections on: named
// pipes on Windows, Unix sockets elsewhere.
//
// Whoever may connect can do as administrator whatever CSI Proxy can do, so a
// listener admits few, and never shares its endpoint with a listener of another
// process: a second instance fails with an error that names the first.
package pipe

import (
	"context"
	"net"
)

// Config says how to listen. The zero Config is the right one for most.
type Config struct {
	// SecurityDescriptor decides who may connect to a named pipe, in the
	// Security Descriptor Definition Language. Empty means
	// DefaultSecurityDescriptor. It has no meaning for Unix sockets, which
	// admit the user who runs the server, and root.
	//
	// https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format
	SecurityDescriptor string
}

// DefaultSecurityDescriptor admits LocalSystem and administrators of this machine.
// ContainerAdministrator of a process-isolated container is one of them, so the
// drivers in use pass. ContainerUser is not; admit it, where that is wanted, with
//
//	(A;;0x12019b;;;S-1-5-93-2-2)
//
// which are the rights to read and write without FILE_CREATE_PIPE_INSTANCE. Anyone
// who has that one, as part of GA or GW, may serve the pipe in our place. See
// https://learn.microsoft.com/windows/win32/ipc/named-pipe-security-and-access-rights
const DefaultSecurityDescriptor = "D:P" + // an access list that inherits nothing
	"(D;;GA;;;NU)" + // nobody who logged on over the network, not even administrators; denials come first
	"(A;;GA;;;SY)" + // LocalSystem: the daemon itself and HostProcess containers
	"(A;;GA;;;BA)" // Administrators: operators and, in containers, ContainerAdministrator

// listenOp is the operation that errors of Listen name.
const listenOp = "listen on"

// Listen listens on the endpoint at path; ctx covers the making of the listener only.
// Every error is a *winerr.Error: Exists if the endpoint has an owner already, Denied if
// this user may not create it, Invalid if path or cfg are no good.
//
// On Windows path is the name of a pipe. Remote clients are rejected.
//
// Elsewhere path is a Unix socket. Its directory is created, for this user only, if
// it does not exist. A socket left behind by a server that has died is replaced,
// and closing the listener removes it.
func Listen(ctx context.Context, path string, cfg Config) (net.Listener, error) {
	return listen(ctx, path, cfg)
}

// PeerPID returns the process at the other end of a connection that a listener of
// this package accepted, as far as the system knows it: a process of the host also
// when it runs in a container. ok is false if it is not known, which includes every
// system but Windows and Linux.
func PeerPID(conn net.Conn) (pid int, ok bool) {
	return peerPID(conn)
}

// ValidateSecurityDescriptor returns an error if Listen would refuse sddl: if it is
// malformed, would admit everyone because it has no access list, or nobody because that
// is empty. Elsewhere than on Windows nobody reads it, and the result is nil.
func ValidateSecurityDescriptor(sddl string) error {
	return validateSecurityDescriptor(sddl)
}

// Owner returns the process that serves the endpoint at path, as far as the system knows
// it. ok is false if nobody serves it, or it is not known.
func Owner(ctx context.Context, path string) (pid int, ok bool) {
	id, err := owner(ctx, path)
	return int(id), err == nil
}
