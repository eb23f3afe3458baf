//go:build !windows

package winerr

// isErrno is always false here: elsewhere a syscall.Errno numbers other things.
func (Code) isErrno(error) bool { return false }
