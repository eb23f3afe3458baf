// Package local is the machine we run on, behind the seam of internal/win.
//
// On Windows each method is about one system call. Those that can hang are left to
// themselves when their context ends (work.go); a comment at each method says why it is
// one of them, or is not. Elsewhere every method fails with ErrNotWindows, which matches
// errors.ErrUnsupported, so that everything above compiles and imports on any OS without
// build tags.
package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// ErrNotWindows is the answer of every method elsewhere than on Windows.
var ErrNotWindows = fmt.Errorf("storage calls work on Windows only, use the emulated node of pkg/winsim elsewhere: %w", errors.ErrUnsupported)

// machine implements win.Machine.
type machine struct{}

// Machine returns the machine we run on. It holds no state and costs nothing.
func Machine() win.Machine { return machine{} }

// Now is the real time.
func (machine) Now() time.Time { return time.Now() }

// Sleep waits in real time.
func (machine) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
