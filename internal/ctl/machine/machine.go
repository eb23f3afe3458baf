// Package machine reads what the API does not tell of the Windows machine that we run on.
// Elsewhere it knows nothing, and says so.
package machine

import "errors"

// ErrNotWindows is the answer of every other system.
var ErrNotWindows = errors.New("this is not Windows")

// SANPolicy says what Windows does with disks that are new to it.
// https://learn.microsoft.com/windows-hardware/customize/desktop/unattend/microsoft-windows-partitionmanager-sanpolicy
func SANPolicy() (string, error) { return sanPolicy() }

// LongPaths reports whether programs that ask for it may use paths of more than 260
// characters without a prefix.
// https://learn.microsoft.com/windows/win32/fileio/maximum-file-path-limitation
func LongPaths() (bool, error) { return longPaths() }
