//go:build !windows

package dial

import (
	"context"
	"net"
)

func dial(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "unix", socketName(path))
}
