package storage

import "fmt"

// SpaceAt returns size and free space of the file system behind a path, in bytes. It is for
// shares, of which CSI Proxy gives no numbers: a driver asks Windows itself, in a HostProcess
// container and in one that has the kubelet's directory mounted. Elsewhere than on Windows the
// error matches errors.ErrUnsupported.
func SpaceAt(path string) (total, free int64, err error) {
	total, free, err = spaceAt(path)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the space at %s: %w", path, err)
	}
	return total, free, nil
}
