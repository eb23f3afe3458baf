package winsim

import "os"

// Moment says when a fault ends the process.
type Moment string

// The moments of a call. What was changed, and kept in a file by Open, is there after either.
const (
	CrashBefore Moment = "before" // it does anything
	CrashAfter  Moment = "after"  // its change was kept, and before anybody is told; of a call that changes nothing, after the next change
)

// crash ends the process now, or once the next change is kept.
func (n *Node) crash(when Moment) {
	switch when {
	case CrashBefore:
		doom(true).strike()
	case CrashAfter:
		n.mu.Lock()
		defer n.mu.Mutex.Unlock()
		n.mu.doom = true
	}
}

// doom is the end of the process, if it is due.
type doom bool

func (d doom) strike() {
	if !d {
		return
	}
	if process, err := os.FindProcess(os.Getpid()); err == nil {
		_ = process.Kill() // of ourselves, which cannot be forbidden
	}
	select {} // the signal is on its way, and nothing may happen meanwhile
}
