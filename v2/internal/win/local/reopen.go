package local

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"

// reopen opens a file, and tries three times more if Windows refuses a parameter with
// ERROR_INVALID_PARAMETER (87). Where a HostProcess container has volume mounts, opens relative
// to a directory sporadically fail so when several run at once. The parameters are always the
// same kind, so a real mistake in them would show everywhere.
// https://github.com/microsoft/Windows-Containers/issues/635
func reopen[H any](open func() (H, error)) (handle H, err error) {
	const attempts = 4
	for range attempts {
		if handle, err = open(); winerr.CodeOf(err) != winerr.InvalidParameter {
			break
		}
	}
	return handle, err
}
