// Package machine reads settings of the local Windows machine that the API does not have. On
// other systems every call fails with ErrNotWindows.
package machine

import (
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// ErrNotWindows is returned on other systems than Windows.
var ErrNotWindows = errors.New("this is not Windows")

// SANPolicy returns the policy that decides whether new disks come online.
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/microsoft-windows-partitionmanager-sanpolicy
func SANPolicy() (win.SANPolicy, error) { return sanPolicy() }

// LongPaths reports whether programs that ask for it may use paths of more than 260
// characters without a prefix.
// https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
func LongPaths() (bool, error) { return longPaths() }
