//go:build !windows

package journal

import "os"

// Mkdir makes a folder that only this user can change.
func Mkdir(dir string) error { return os.Mkdir(dir, 0o700) }

func openAlone(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
