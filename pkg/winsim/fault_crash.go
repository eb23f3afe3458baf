package winsim

import "os"

// Moment says when a fault kills the process.
type Moment string

// The moments of a call. A state file (Open) is complete after either.
const (
	CrashBefore Moment = "before" // before the call does anything
	CrashAfter  Moment = "after"  // after its change is on disk, before it returns; if it changes nothing, after the next change
)

// crash kills the process now, or after the next change is on disk.
func (n *Node) crash(when Moment) {
	switch when {
	case CrashBefore:
		killProcess()
	case CrashAfter:
		n.mu.Lock()
		defer n.mu.Mutex.Unlock()
		n.mu.killAfterChange = true
	}
}

// killProcess ends this process as kill -9 does.
func killProcess() {
	if process, err := os.FindProcess(os.Getpid()); err == nil {
		_ = process.Kill() // a process may always kill itself
	}
	select {} // do nothing until the signal arrives
}
