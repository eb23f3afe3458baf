package winsim

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// Fault makes calls to a node fail or wait. Zero conditions match every call. Of several faults, all delays apply, and the
// first error counts.
type Fault struct {
	Call string `yaml:"call"` // the name of a call to the machine as Calls lists it, such as Format. Inject lists all when it refuses one.
	// Object is a pattern for what the call is about: '*' matches any characters, also backslashes, and case is ignored;
	// empty means any. It is a path; \\.\PhysicalDrive3 or the interface path of a disk; \\?\Volume{GUID}\;
	// \\server\share; the name of a service, an iSCSI target, or a portal as in 10.0.0.10:3260.
	Object string  `yaml:"object"`
	Nth    int     `yaml:"nth"`    // the number of the first matching call to hit, from 1; later calls are hit, too
	Times  int     `yaml:"times"`  // limits the number of hits; 0 means no limit
	Chance float64 `yaml:"chance"` // the probability of a hit; 0 means always

	Delay time.Duration `yaml:"delay"` // delays the call in real time, at most until the fault is removed, also if its caller leaves
	Late  time.Duration `yaml:"late"`  // delays the answer in the same way, after the effect
	Error uint32        `yaml:"error"` // the Windows code with which the call fails without effect; for formats also a code of WMI
	Do    func(*Node)   `yaml:"-"`     // runs before the call. With it, a test can change the node between two calls of one operation.
}

func (f Fault) validate() *ModelError {
	switch {
	case f.Call != "" && !callNames[f.Call]:
		return problem("call", "unknown call %q; use one of %s", f.Call, strings.Join(slices.Sorted(maps.Keys(callNames)), ", "))
	case f.Nth < 0 || f.Times < 0 || f.Delay < 0 || f.Late < 0:
		return problem("nth", "nth, times, delay and late must not be negative")
	case !(f.Chance >= 0 && f.Chance <= 1): // refuses NaN too
		return problem("chance", "must be between 0 and 1")
	case f.Delay == 0 && f.Late == 0 && f.Error == 0 && f.Do == nil:
		return problem("error", "the fault does nothing; set error, delay or late")
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
	count  atomic.Int32 // of the active ones
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
	n.faults.count.Add(1)
	return injection, nil
}

// Remove deactivates the fault and releases the calls that it delays. Removing twice is harmless.
func (i *Injection) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	at := slices.Index(i.faults.active, i)
	if at < 0 {
		return
	}
	i.faults.active = slices.Delete(i.faults.active, at, at+1)
	i.faults.count.Add(-1)
	close(i.removed)
}

// Hits returns how many calls the fault has hit.
func (i *Injection) Hits() int {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	return i.hit
}

// apply applies the faults that a call has hit: all delays and hooks, in order of
// injection, and the first error.
func (n *Node) apply(ctx context.Context, hits []*Injection, call string, restarted <-chan struct{}) error {
	var failure error
	for _, fault := range hits {
		if fault.Do != nil {
			fault.Do(n)
		}
		if fault.Delay > 0 {
			if err := fault.delay(ctx, fault.Delay, restarted); err != nil {
				return err
			}
		}
		if fault.Error != 0 && failure == nil {
			failure = failureOf(call, fault.Error)
		}
	}
	return failure
}

// delay waits, at most until the fault is removed. A restart of the node ends the call.
func (i *Injection) delay(ctx context.Context, d time.Duration, restarted <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-i.removed:
	case <-restarted:
		return aborted
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
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
