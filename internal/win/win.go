// Package win is the seam between our logic and a Windows machine: small typed
// interfaces, one method for about one Windows call, and the values they carry.
//
// Two machines stand behind it. internal/win/local is the one we run on;
// pkg/winsim is an emulated one that runs anywhere. Everything above the seam,
// from the order of calls to retries and error classes, is therefore exercised
// on every OS.
//
// Rules of the seam:
//   - Paths are clean in the sense of internal/win/winpath; the machine adds prefixes
//     and trailing backslashes as each Windows call wants them.
//   - Failures are exactly what Windows answered, or ctx's error: a winerr.Code, HRESULTs
//     among them, and only from the two ways to format also what their classes return.
//   - Methods are safe for concurrent use and return promptly when ctx ends.
//   - Which links are followed on the way to a file is said by its Path.
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
}

// Clock lets host logic wait without depending on real time.
type Clock interface {
	// Now is the time, for deadlines of such waits.
	Now() time.Time

	// Sleep waits for d and returns ctx's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}
