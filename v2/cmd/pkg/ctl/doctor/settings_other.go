//go:build !windows

package doctor

import (
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/ctl/scm"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// SANPolicy is for Windows.
func SANPolicy() (win.SANPolicy, error) { return 0, scm.ErrNotWindows }

// WindowsBuild is for Windows.
func WindowsBuild() string { return "" }

// LongPaths is for Windows.
func LongPaths() (bool, error) { return false, scm.ErrNotWindows }
