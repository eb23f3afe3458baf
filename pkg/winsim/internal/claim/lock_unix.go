//go:build unix

package claim

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// openLock opens the lock file in the mark.
func (d *Dir) openLock() (*os.File, error) {
	file, err := d.Root.OpenFile(filepath.Join(Mark, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lock(file)
}

// Lock opens or creates a file that only one process can have open.
func Lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return lock(file)
}

func lock(file *os.File) (*os.File, error) {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
