// Package win is the seam between our logic and a Windows machine: small typed
// interfaces, one method for about one Windows call, and the values they carry.
//
// It has two implementations. internal/win/local is the machine we run on;
// pkg/winsim is an emulated one that runs anywhere. So everything above the
// seam, from the order of calls to retries and error classes, is tested on every OS.
//
// Rules of the seam:
//   - Paths are clean in the sense of internal/win/winpath; the machine adds the prefixes
//     and trailing backslashes that each Windows call needs.
//   - Failures are exactly what Windows returned, or ctx's error: a winerr.Code, HRESULTs
//     among them. Only the two ways to format also return the codes of their classes.
//   - Methods are safe for concurrent use. Those of local and of the emulated node block, as Windows does, whatever
//     happens to ctx; in front of both stands internal/win/bounds, which returns when ctx ends.
//   - Secrets are the caller's, who wipes them: bounds gives a call that may outlive its caller copies of its own.
//   - Path says which links on the way to a file are followed.
package win

import (
	"context"
	"time"
)

// Machine is everything our hosts need from a Windows machine.
type Machine interface {
	Clock
	Files
	Disks
	Volumes
	ISCSI
	System
	SMB
	Pending
}

// Clock lets host logic wait without depending on real time.
type Clock interface {
	// Now is what the machine's clock shows, to compare it with the dates of files. Operators and time services set
	// the clock, so no age and no deadline may depend on it.
	Now() time.Time

	// Elapsed is the time since some moment in the past, by a clock that is never set: for ages and deadlines.
	Elapsed() time.Duration

	// Sleep waits for d and returns ctx's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}
