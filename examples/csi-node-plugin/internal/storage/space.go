package storage

import "fmt"

// SpaceAt returns size and free space of the file system behind a path, in bytes. CSI Proxy
// does not measure shares, so a driver asks Windows, in a HostProcess container or in one that has
// the kubelet's directory mounted. On other systems the error matches errors.ErrUnsupported.
func SpaceAt(path string) (total, free int64, err error) {
	total, free, err = spaceAt(path)
	if err != nil {
		return 0, 0, fmt.Errorf("measure %s: %w", path, err)
	}
	return total, free, nil
}
