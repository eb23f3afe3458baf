package dial

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

// dial opens the pipe at SECURITY_ANONYMOUS, go-winio's default, so that a server
// that has taken the name unlawfully cannot act in the client's name. See
// https://learn.microsoft.com/windows/win32/ipc/impersonating-a-named-pipe-client
func dial(ctx context.Context, path string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, pipeName(path))
}
