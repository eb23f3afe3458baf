package pipe

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// peerPID asks for SO_PEERCRED, which holds the process that called connect, or
// listen if conn is a client's; see unix(7). The number is 0 for a process in
// another PID namespace that is not visible from here.
func peerPID(conn net.Conn) (pid int, ok bool) {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid, err == nil && pid > 0
}

// describe reads the process's directory in /proc; see proc_pid_comm(5).
func describe(pid int) (name, user string) {
	dir := fmt.Sprintf("/proc/%d", pid)
	if comm, err := os.ReadFile(dir + "/comm"); err == nil {
		name = strings.TrimSuffix(string(comm), "\n")
	}
	if info, err := os.Stat(dir); err == nil {
		user = strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
	}
	return name, user
}
