//go:build !windows

package local

// ReadSANPolicy fails: only Windows has such a policy.
func ReadSANPolicy() (SANPolicy, error) { return 0, ErrNotWindows }
