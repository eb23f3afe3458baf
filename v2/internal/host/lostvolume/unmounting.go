package lostvolume

import (
	"context"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// unmountPause and unmountWait are how often, and how long, a question looks for the end of an unmount. Windows removes a
// mount in milliseconds if it is not busy.
const (
	unmountPause = 20 * time.Millisecond
	unmountWait  = 10 * time.Second
)

// Unmounting announces that the volume at a path is about to be taken away, until end is called.
func Unmounting(m win.Machine, path string) (end func()) {
	return m.Announce(win.Unmounting, winpath.Fold(path))
}

// AwaitUnmount waits until nothing takes the volume away that was seen at a path, or may undo its mount, and reports whether
// it had to: the path must be read again then. Its caller would take the volume for mounted, and its pod would write to the
// folder. A change is known by the path that was asked for, and Windows' part of it by the one behind the links.
func AwaitUnmount(ctx context.Context, m win.Machine, op, path string, behind win.Path) (waited bool, err error) {
	for began := time.Now(); ; waited = true {
		stuck, found := m.StuckChange(ctx, winpath.Fold(path))
		if at := winpath.Fold(behind.String()); !found && at != winpath.Fold(path) {
			stuck, found = m.StuckChange(ctx, at)
		}
		switch {
		case !found:
			return waited, nil
		case time.Since(began) > unmountWait:
			return waited, winerr.As(winerr.Unavailable, op, path, stuck, "")
		}
		select {
		case <-ctx.Done():
			return waited, winerr.Wrap(op, path, ctx.Err())
		case <-time.After(unmountPause):
		}
	}
}
