// Package dial opens the connection between a client and a CSI Proxy endpoint: a
// named pipe on Windows, a Unix socket on other systems. Nothing else in this module
// dials.
package dial

import (
	"context"
	"net"
	"strings"
)

// Dial connects to the endpoint at path and gives up when ctx is done. The caller
// must close the connection.
//
// On Windows path is the name of a pipe. If the pipe has no free instance, Dial
// retries until ctx is done. Backslashes may be doubled, as in
// `\\.\\pipe\\csi-proxy-disk-v1`, the spelling that drivers have compiled in.
//
// On other systems path is a Unix socket, with or without unix:// in front, the way
// kubelet and the CSI sidecars write it.
//
// The endpoint must belong to this user, to the administrators of the system or to one of owners:
// SIDs on Windows, numbers of users on other systems. Otherwise Dial sends nothing and returns an
// *OwnerError.
func Dial(ctx context.Context, path string, owners []string) (net.Conn, error) {
	return dial(ctx, path, owners)
}

// pipeName returns the canonical spelling of a local pipe's name.
// Windows does the same with the separators after \\.\ (see
// https://learn.microsoft.com/dotnet/standard/io/file-path-formats#path-normalization),
// but it takes a doubled pair in front, left by one escaping too many in a
// manifest, for a network path. Names outside the \\.\ namespace are left alone.
func pipeName(path string) string {
	if !strings.HasPrefix(path, `\\`) {
		return path
	}
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '\\' })
	if len(parts) == 0 || parts[0] != "." {
		return path
	}
	return `\\` + strings.Join(parts, `\`)
}

// socketName strips the URL scheme from the name of a Unix socket.
func socketName(path string) string {
	return strings.TrimPrefix(path, "unix://")
}
