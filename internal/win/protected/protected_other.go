//go:build !windows

package protected

import (
	"fmt"
	"os"
	"syscall"
)

func mkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) } //nolint:gosec // as on Windows, others read

func openFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); err == nil && ok && owner.Uid != 0 && int(owner.Uid) != os.Geteuid() {
		err = fmt.Errorf("%s belongs to user %d", path, owner.Uid)
	}
	if err == nil {
		err = file.Chmod(0o600)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
