//go:build !windows

package journal

import "os"

func openAlone(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
