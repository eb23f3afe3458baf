package simulation

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// run is one simulation, in a bubble of virtual time. All that happens to the node goes through its gate: the calls of
// the processes on it, and the steps of the kubelet, the pods and the backend. When all goroutines are blocked, the seed
// picks who goes on, or what befalls the node.
type run struct {
	seed    uint64
	random  *rand.Rand // of the scheduler alone, so that its order is the seed's
	node    *winsim.Node
	world   world
	began   time.Time
	dropped map[int]bool             // events that do not happen, see -shrink
	calm    bool                     // none happen
	took    map[string]time.Duration // the longest that each verb took for volumes which nothing befell

	mu       sync.Mutex
	waiting  []*waiter
	underWay []*waiter    // calls that the node has
	finished []*waiter    // since the last check
	period   atomic.Int64 // counts what the scheduler has let go
	arrived  chan struct{}

	events  int // so far
	repairs []repair
	ending  bool      // no more events
	rest    int       // steps until the next event
	befell  time.Time // when the last one began or ended

	aim    *waiter // the call that the event is about
	awaits int     // for how many steps the event waits for one

	network    *network
	names      map[string]string // of volumes, see nameOf
	heal       daemon.HealMode
	running    sync.WaitGroup // all goroutines but the scheduler's
	users      atomic.Int64   // volumes whose life goes on
	asked      []*question
	passwords  int               // how often they were changed
	disks      map[string]string // their states before the next change; nil for unknown
	eventLimit int
	restLimit  int // steps between two events
	happened   []int

	trace []string

	failing  sync.Mutex
	failure  error // the first broken invariant
	ended    atomic.Bool
	failedAt int      // the line of the trace
	losses   []string // the lines of logs about them
}

// waiter is what waits at the gate.
type waiter struct {
	process *process // nil for a step
	by      string   // its name
	of      *process // whose request goes on, which Windows has
	verb    string   // the verb for which it is made, such as "stage disk-1"; empty for the daemon's own
	call    *win.Call
	text    string
	period  int64 // in which it came
	goOn    chan struct{}

	err      error           // of the call
	left     <-chan struct{} // closed when the caller leaves; nil if that does not count
	admitted int64           // the period in which it went on

	code   winerr.Code // with which the call fails instead
	delay  time.Duration
	spared bool // from an event that has waited for a call

	carriedOut atomic.Bool
}

const verbHeader = "simulated-verb"

// during returns a context whose calls are known to be made for a verb, also on the other side of gRPC.
func during(ctx context.Context, verb string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, verbHeader, verb)
}

func verbOf(ctx context.Context) string {
	served, _ := metadata.FromIncomingContext(ctx)
	own, _ := metadata.FromOutgoingContext(ctx)
	return strings.Join(append(served[verbHeader], own[verbHeader]...), "")
}

// note adds a line to the trace.
func (r *run) note(format string, args ...any) {
	r.trace = append(r.trace, fmt.Sprintf("%10.3f  ", time.Since(r.began).Seconds())+fmt.Sprintf(format, args...))
}

// await waits at the gate until the seed picks w, or the process dies.
func (r *run) await(w *waiter) (alive bool) {
	w.goOn = make(chan struct{})
	r.mu.Lock()
	w.period = r.period.Load()
	r.waiting = append(r.waiting, w)
	r.mu.Unlock()
	r.signal()
	if w.process == nil {
		<-w.goOn
		return true
	}
	select {
	case <-w.goOn:
		return true
	case <-w.process.ctx.Done():
	case <-w.left:
	}
	r.mu.Lock()
	r.waiting = slices.DeleteFunc(r.waiting, func(other *waiter) bool { return other == w })
	r.mu.Unlock()
	return !w.process.isDead()
}

func (p *process) isDead() bool { return p.ctx.Err() != nil }

func (r *run) signal() {
	select {
	case r.arrived <- struct{}{}:
	default:
	}
}

// step does something to the node beside the calls of Windows, when the seed says so. Nothing else happens meanwhile.
func (r *run) step(text string, do func()) {
	r.await(&waiter{text: text})
	if !r.over() { // at the end all go on at once
		do()
	}
}

// admit is before the bounds of a process: the seed decides which of its calls comes first.
func (p *process) admit(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	if c.Method == "Next" { // a part of ListDirectory
		return next(ctx)
	}
	w := &waiter{process: p, by: p.name, call: c, text: p.run.describe(c), left: ctx.Done()}
	if !shared(c) {
		w.verb = verbOf(ctx)
	}
	if !p.run.await(w) {
		return context.Canceled
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return next(context.WithValue(ctx, waiterKey{}, w))
}

// shared reports whether verbs share the answer to a call, so that any of them may be the one that asks: all but changes
// of disks and servers, and what is about one file.
func shared(c *win.Call) bool {
	switch c.Method {
	case "AddSendTargetPortal", "RefreshSendTargetPortal", "Login", "Logout", "SystemVolumes":
		return true
	}
	return !changes(c) && c.HangsOn().Kind != win.ReachFile
}

type waiterKey struct{}

// carryOut is behind the bounds: a call that is there is carried out, also if its caller has left. It goes on at once if
// nothing else has happened since it was admitted.
func (p *process) carryOut(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	r := p.run
	w, ok := ctx.Value(waiterKey{}).(*waiter)
	if !ok || w.carriedOut.Swap(true) { // then bounds asks where the disk of a stuck call is
		return next(ctx)
	}
	late := func(text string) { r.await(&waiter{of: p, verb: w.verb, call: c, text: w.text + text}) }
	c.Resumed = func() { late(", which hung,") }
	switch {
	case w.code != 0:
		next = func(context.Context) error { return w.code }
	case w.delay > 0:
		select {
		case <-time.After(w.delay):
		case <-p.ctx.Done():
		}
		late(", which was slow,")
	case w.admitted != r.period.Load():
		late(", which had to wait,")
	}
	r.mu.Lock()
	r.underWay = append(r.underWay, w)
	r.mu.Unlock()
	err := next(ctx)
	r.mu.Lock()
	w.err = err
	r.underWay = slices.DeleteFunc(r.underWay, func(other *waiter) bool { return other == w })
	r.finished = append(r.finished, w)
	r.mu.Unlock()
	if p.isDead() {
		return context.Canceled
	}
	return err
}

// describe says what a call does, without secrets, and without the random names of new volumes.
func (r *run) describe(c *win.Call) string {
	text := c.Method
	if entry := c.Entry(); entry != "" {
		text += " " + entry
	}
	for _, arg := range c.Args() {
		switch value := arg.Value.(type) {
		case string, win.Path, win.Device, win.VolumeID, uint32, win.SessionID, win.DiskAttributes:
			text += fmt.Sprintf(" %v", value)
		case win.Login:
			text += " " + value.Target
		case win.SMBMappingRequest:
			text += " " + value.Remote
		}
	}
	return volumeID.ReplaceAllStringFunc(text, r.nameOf)
}

// nameOf is the serial number of the disk that a volume is on.
func (r *run) nameOf(id string) string {
	id = strings.ToLower(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[id] == "" {
		r.names[id] = id
		for serial, volume := range r.volumesOnDisks() {
			r.names[strings.ToLower(volume)] = "volume-of-" + serial
		}
	}
	return r.names[id]
}

// loop lets one after the other go on, until done reports that all have ended.
func (r *run) loop(done func() bool) {
	for r.failure == nil {
		synctest.Wait()
		select { // those who came before are seen now
		case <-r.arrived:
		default:
		}
		r.check()
		r.repair()
		if done() {
			return
		}
		if len(r.trace) > maxTrace {
			r.fail(invariant5, "the run does not end: %d lines of trace", len(r.trace))
			return
		}
		r.mu.Lock()
		idle := len(r.waiting) == 0
		r.mu.Unlock()
		if idle {
			select { // time passes until one comes
			case <-r.arrived:
				time.Sleep(time.Nanosecond) // and all others who come now
			case <-time.After(time.Minute):
			}
			continue
		}
		r.befall()
		picked := r.pick()
		if len(picked) == 0 {
			continue // the event has ended those who waited
		}
		w := picked[0]
		r.note("%s", w)
		if w.call != nil && changes(w.call) && r.disks == nil {
			r.disks = r.diskStates()
		} else if w.call == nil {
			r.disks = nil
		}
		for _, w := range picked {
			close(w.goOn)
		}
		time.Sleep(time.Microsecond) // so that no two timers of different calls fire at once
	}
}

// maxTrace is more than any run that ends has.
const maxTrace = 60_000

// pick takes one of those who wait, and all who came with it for the same: no trace shows which one it was.
func (r *run) pick() (picked []*waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return nil
	}
	slices.SortStableFunc(r.waiting, (*waiter).compare) // those who came in the same period came in no order
	from := slices.DeleteFunc(slices.Clone(r.waiting), func(w *waiter) bool { return w.of == nil || !w.of.isDead() })
	if len(from) == 0 { // a process ends when its requests have, and its successor starts then
		from = r.waiting
	}
	w := from[r.random.IntN(len(from))]
	now := r.period.Add(1)
	r.waiting = slices.DeleteFunc(r.waiting, func(other *waiter) bool {
		same := other.compare(w) == 0
		if same {
			other.admitted, other.code, other.delay = now, w.code, w.delay
			picked = append(picked, other)
		}
		return same
	})
	return picked
}

func (w *waiter) compare(other *waiter) int {
	return cmp.Or(cmp.Compare(w.period, other.period), cmp.Compare(w.by, other.by), cmp.Compare(w.text, other.text), cmp.Compare(w.verb, other.verb))
}

func (w *waiter) String() string {
	text := w.text
	if w.verb != "" {
		text += ", for " + w.verb
	}
	if w.by != "" {
		text += ", by " + w.by
	}
	return text
}
