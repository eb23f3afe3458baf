package winerr

import "syscall"

func (c Code) isErrno(target error) bool {
	errno, ok := target.(syscall.Errno)
	return ok && uintptr(errno) == uintptr(c)
}
