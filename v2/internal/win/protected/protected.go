// Package protected makes directories of the daemon that only administrators can change, whatever the directory above
// lets others do, and opens the daemon's own files. Modes mean nothing on Windows: access lists do it there.
package protected

import (
	"errors"
	"io/fs"
	"os"
)

// MkdirAll makes a directory that only LocalSystem and Administrators can change, and that Users can read. What is
// missing above it inherits its access. A directory that exists stays as it is.
func MkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	return mkdirAll(dir)
}

// OpenFile is os.OpenFile for a file of the daemon. It fails if a link has its name: others can make links in a directory
// that existed before, and the daemon may write where they may not.
func OpenFile(path string, flag int, mode fs.FileMode) (*os.File, error) {
	file, err := os.OpenFile(path, flag|noFollow, mode)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Mode()&(fs.ModeSymlink|fs.ModeIrregular) != 0 {
		err = &os.PathError{Op: "open", Path: path, Err: errors.New("it is a link, and links are not followed there")}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}
