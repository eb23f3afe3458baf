//go:build !windows

package dial

import (
	"context"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// dial checks the directory and the socket before it connects, and on Linux the server after: the
// files can change in between, the process that listens cannot.
func dial(ctx context.Context, path string, owners []string) (net.Conn, error) {
	path = socketName(path)
	trusted := [][]string{{"0", strconv.Itoa(os.Geteuid())}, owners}
	for _, file := range []struct{ object, name string }{
		{"the directory of the socket", filepath.Dir(path)},
		{"the socket", path},
	} {
		info, err := os.Stat(file.name)
		if err != nil {
			break // connecting fails, too, with the error that callers know
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			if err := checkOwner(file.object, strconv.Itoa(int(stat.Uid)), userName, trusted...); err != nil {
				return nil, err
			}
		}
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if uid, ok := serverUID(conn); ok {
		if err := checkOwner("the server", strconv.Itoa(uid), userName, trusted...); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

func userName(uid string) string {
	account, err := user.LookupId(uid)
	if err != nil {
		return ""
	}
	return account.Username
}
