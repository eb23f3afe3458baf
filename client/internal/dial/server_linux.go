package dial

import (
	"net"
	"syscall"
)

// serverUID asks for SO_PEERCRED, which at the client's end holds the process that called listen;
// see unix(7).
func serverUID(conn net.Conn) (uid int, ok bool) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	var peer *syscall.Ucred
	if err := raw.Control(func(fd uintptr) {
		peer, _ = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || peer == nil {
		return 0, false
	}
	return int(peer.Uid), true
}
