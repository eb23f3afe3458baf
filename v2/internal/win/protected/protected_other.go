//go:build !windows

package protected

import (
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

func mkdirAll(dir string) error { return os.MkdirAll(dir, 0o755) } //nolint:gosec // as on Windows, others read
