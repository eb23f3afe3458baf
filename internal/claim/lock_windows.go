package claim

import (
	"os"
	"path/filepath"
	"syscall"
)

// openLock opens the file in the mark that only one process can have, until it ends: it is
// shared with nobody.
func (d *Dir) openLock() (*os.File, error) {
	path := filepath.Join(d.Path, Mark, lockName)
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(handle), path), nil
}
