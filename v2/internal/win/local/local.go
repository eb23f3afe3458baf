// Package local is the machine we run on, behind the seam of internal/win.
//
// On Windows each method is about one system call, and blocks as long as that does; package bounds in front of it gives
// calls their contexts. A comment at each method says why it can hang, or cannot.
// On other systems every method fails with ErrNotWindows, which matches
// errors.ErrUnsupported, so that everything above compiles on any OS without build tags.
package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/bounds"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/calllog"
)

// ErrNotWindows is the error of every method on other systems.
var ErrNotWindows = fmt.Errorf("storage calls work on Windows only; on other systems use the emulated node of v2/pkg/winsim: %w", errors.ErrUnsupported)

// Machine is the machine we run on, with the bounds that all of this process share. At -v=6 it logs its calls.
var Machine = sync.OnceValue(newMachine)

func newMachine() *bounds.Machine { return bounds.New(calllog.Machine(thisMachine), nil, nil) }

// Now is the real time.
func (machine) Now() time.Time { return time.Now() }

// start is a moment that Go measures from with a monotonic clock.
var start = time.Now()

func (machine) Elapsed() time.Duration { return time.Since(start) }

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
