//go:build !windows

package machine

import "github.com/kubernetes-csi/csi-proxy/v2/internal/win"

func sanPolicy() (win.SANPolicy, error) { return 0, ErrNotWindows }

func longPaths() (bool, error) { return false, ErrNotWindows }
