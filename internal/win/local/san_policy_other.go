//go:build !windows

package local

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

// SANPolicy fails: only Windows has such a policy.
func SANPolicy() (win.SANPolicy, error) { return 0, ErrNotWindows }
