// Package protected makes files and directories of the daemon that only administrators can change, whatever the
// directory above lets others do. Modes mean nothing on Windows: access lists do it there.
package protected

import "os"

// MkdirAll makes a directory that only LocalSystem and Administrators can change, and that Users can read. What is
// missing above it inherits its access. A directory that exists stays as it is.
func MkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	return mkdirAll(dir)
}

// OpenFile opens a file to read it and to append to it, and makes it if it is missing. Only LocalSystem and
// Administrators can read it. A file that belongs to another account, or is a link, is refused: a
// user may have put it there to read it later.
func OpenFile(path string) (*os.File, error) { return openFile(path) }
