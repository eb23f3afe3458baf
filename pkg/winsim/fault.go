package winsim

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Fault makes calls to a node fail, wait or crash. Zero conditions match every call. If several faults match a call, all
// delays apply in order, and the first error counts.
type Fault struct {
	// Call is the name of a call to the machine as Calls lists it, such as Remove or Format; empty means any. One gRPC
	// call can make several. Inject names all calls when it refuses one.
	Call string `yaml:"call"`
	// Object is a pattern for what the call is about: '*' matches any characters, also backslashes, and case is ignored;
	// empty means any. It is a path; \\.\PhysicalDrive3 or the interface path of a disk; \\?\Volume{GUID}\;
	// \\server\share; the name of a service, an iSCSI target, or a portal as in 10.0.0.10:3260.
	Object string `yaml:"object"`
	// Nth is the number of the first matching call to hit, from 1; later calls are hit, too. The look for stale mounts at
	// the start of csi-proxy-sim makes calls, unless -heal-stale-mounts is off.
	Nth int `yaml:"nth"`
	// Times limits the number of hits; 0 means no limit.
	Times int `yaml:"times"`
	// Chance is the probability of a hit; 0 means always.
	Chance float64 `yaml:"chance"`

	// Delay delays the call in real time, at most until its context ends or the fault is
	// removed.
	Delay time.Duration `yaml:"delay"`
	// Error is the Windows code with which the call fails, without any effect; 0 means no
	// failure. For Format, 1 to 6 and 40000 and up are codes of MSFT_Volume.Format; for
	// FormatLegacy, 1 to 18 are codes of Win32_Volume.Format.
	Error uint32 `yaml:"error"`
	// Crash kills the process of the node, as kill -9 does. Use it with csi-proxy-sim -state.
	Crash Moment `yaml:"crash"`
	// Do runs before the call. With it, a test can change the node between two calls of one
	// operation.
	Do func(*Node) `yaml:"-"`
}

func (f Fault) validate() *ModelError {
	for _, err := range []*ModelError{
		notNegative("nth", f.Nth), notNegative("times", f.Times), notNegative("delay", f.Delay),
		oneOf("crash", f.Crash, CrashBefore, CrashAfter),
	} {
		if err != nil {
			return err
		}
	}
	switch {
	case f.Call != "" && !callNames[f.Call]:
		return problem("call", "unknown call %q; use one of %s", f.Call, strings.Join(slices.Sorted(maps.Keys(callNames)), ", "))
	case !(f.Chance >= 0 && f.Chance <= 1): // refuses NaN too
		return problem("chance", "must be between 0 and 1")
	case f.Delay == 0 && f.Error == 0 && f.Do == nil && f.Crash == "":
		return problem("error", "the fault does nothing; set error, delay or crash")
	}
	return nil
}

// Injection is a Fault that is active on a node.
type Injection struct {
	faults *faults
	Fault
	pattern      string        // Object, folded
	removed      chan struct{} // closed by Remove
	matched, hit int           // guarded by faults.mu
}

type faults struct {
	mu     sync.Mutex
	random *rand.Rand
	active []*Injection
}

// Inject activates a fault until Remove, or until it has hit Times calls.
func (n *Node) Inject(f Fault) (*Injection, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	injection := &Injection{faults: &n.faults, Fault: f, pattern: winpath.Fold(f.Object), removed: make(chan struct{})}
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	n.faults.active = append(n.faults.active, injection)
	return injection, nil
}

// Remove deactivates the fault and releases the calls that it delays. Removing twice is
// harmless.
func (i *Injection) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	at := slices.Index(i.faults.active, i)
	if at < 0 {
		return
	}
	i.faults.active = slices.Delete(i.faults.active, at, at+1)
	close(i.removed)
}

// Hits returns how many calls the fault has hit. Tests use it to check that a fault had an
// effect.
func (i *Injection) Hits() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.hit
}

// applyFaults applies the faults that match a call: all delays and hooks, in order of
// injection, and the first error.
func (n *Node) applyFaults(ctx context.Context, call string, c *win.Call) error {
	var failure error
	for _, fault := range n.faults.match(call, func() []string { return n.objectsOf(c) }) {
		if fault.Do != nil {
			fault.Do(n)
		}
		if fault.Delay > 0 {
			if err := sleep(ctx, fault.Delay, fault.removed); err != nil {
				return err
			}
		}
		n.crash(fault.Crash)
		if fault.Error != 0 && failure == nil {
			failure = failureOf(call, fault.Error)
		}
	}
	return failure
}

// failureOf converts a code to the error of a call: the two format calls have their own codes.
func failureOf(call string, number uint32) error {
	const (
		generic = 6     // the last code that all storage management methods share
		last    = 18    // of Win32_Volume.Format
		ours    = 40000 // the first code beyond those of Win32
		theirs  = 59999
	)
	switch {
	case (call == "Format" || call == "ResizePartition") && (number <= generic || (number >= ours && number <= theirs)):
		return winerr.StorageCode(number)
	case call == "FormatLegacy" && number <= last:
		return winerr.LegacyFormatCode(number)
	default:
		return winerr.Code(number)
	}
}

func (fs *faults) match(call string, names func() []string) []*Injection {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.active) == 0 {
		return nil
	}
	var objects []string // folded
	var hits []*Injection
	for _, i := range fs.active {
		if i.Call != "" && i.Call != call {
			continue
		}
		if i.Object != "" && objects == nil {
			for _, name := range names() {
				objects = append(objects, winpath.Fold(name))
			}
		}
		if i.Object != "" && !slices.ContainsFunc(objects, i.matches) {
			continue
		}
		i.matched++
		if i.matched < i.Nth || (i.Times > 0 && i.hit >= i.Times) || (i.Chance > 0 && fs.random.Float64() >= i.Chance) {
			continue
		}
		i.hit++
		hits = append(hits, i)
	}
	return hits
}

func (i *Injection) matches(folded string) bool { return matchPattern(i.pattern, folded) }

// matchPattern matches '*' with any characters, including backslashes.
func matchPattern(pattern, s string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == s
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(s, first) || !strings.HasSuffix(s[len(first):], last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}
