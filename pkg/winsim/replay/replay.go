// Package replay makes recorded calls on an emulated node and says where the node answers differently.
//
// A recording of a real machine so shows where the emulator is wrong. In a test:
//
//	replay.Check(t, "testdata/server-2022.jsonl")
//
// The node is built from the description at the beginning of the recording, and from what the first call about
// each file says. Calls are made one after the other, in the order in which they began, at their recorded times
// on the node's clock. What other programs did to disks and files meanwhile is made to happen, as far as the
// calls tell. How long a call took is not compared, nor times and session ids that a machine makes up.
package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Kind says how an answer differs.
type Kind string

// The kinds of differences.
const (
	Code  Kind = "code"  // another error, or an error instead of success
	Value Kind = "value" // another result
	Order Kind = "order" // a list with the same elements in another order
	Bytes Kind = "bytes" // an answer of a driver that our decoder refuses
)

// Difference is an answer of the emulated node that is not the recorded one.
type Difference struct {
	Call      uint64 `json:"call"` // its number in the recording
	Method    string `json:"method"`
	Arguments string `json:"arguments"`
	Kind      Kind   `json:"kind"`
	Field     string `json:"field,omitempty"` // of the result, such as Partitions[1].Length
	Recorded  string `json:"recorded"`
	Emulated  string `json:"emulated"`
}

// Skip is a call that was not made or not compared.
type Skip struct {
	Call   uint64 `json:"call"`
	Method string `json:"method"`
	Reason string `json:"reason"`
}

// Report is what a replay has shown.
type Report struct {
	Program     string       `json:"program"` // that has recorded
	Windows     string       `json:"windows,omitempty"`
	Calls       int          `json:"calls"` // that were compared
	Raw         int          `json:"raw"`   // answers of drivers that were decoded
	Differences []Difference `json:"differences"`
	Skipped     []Skip       `json:"skipped"`
	// Outside is what other programs did to files while calls were recorded.
	Outside []Change `json:"outside"`
	// Notes say what the recording lacks.
	Notes []string `json:"notes"`
}

// Compare reads a recording, makes its calls on an emulated node and reports the differences.
func Compare(ctx context.Context, r io.Reader) (*Report, error) {
	recording, err := record.Read(interruptible{ctx, r})
	if err != nil {
		return nil, err
	}
	if recording.Description == nil {
		return nil, errors.New("the recording has no description of the machine; record for longer, or with a larger file")
	}
	before := len(recording.Calls)
	recording.Calls = slices.DeleteFunc(recording.Calls, func(c record.Call) bool { return c.Seq <= recording.Description.Seq })
	before -= len(recording.Calls)
	skipped := skipUnknown(recording)
	h, err := newHistory(ctx, recording.Description, recording.Calls)
	if err != nil {
		return nil, err
	}
	node, notes, err := newNode(recording, h)
	if err != nil {
		return nil, errors.New(short(err.Error()))
	}
	p, err := newPlayback(ctx, recording, node, h)
	if err != nil {
		return nil, err
	}
	if before > 0 {
		p.note("%d calls are from before the description of the machine; they are left out", before)
	}
	if p.report.Skipped = append(p.report.Skipped, skipped...); len(skipped) > 0 {
		p.note("%d calls are skipped because this program does not know their methods, the first is %s; use a newer program", len(skipped), skipped[0].Method)
	}
	for _, text := range notes {
		p.note("%s", text)
	}
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	p.report.Outside = append(p.report.Outside, p.files.changes...)
	p.decodeRaw(recording.Raw)
	switch {
	case p.report.Calls > 0:
	case len(p.report.Skipped) > 0:
		p.note("no call was compared, because all were skipped; record again, with more operations")
	default:
		p.note("no call was compared, because the recording has none after its description; use the node while its calls are recorded")
	}
	return &p.report, nil
}

// interruptible is a reader that fails after the end of a context.
type interruptible struct {
	ctx context.Context //nolint:containedctx // of the one call that reads
	io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(b)
}

// maxUnzipped is the size up to which a compressed recording is read: that of the largest file that csi-proxy
// writes. What is read takes that much memory and more; record.MaxCalls limits how much more.
const maxUnzipped = 2 << 30

// CompareFile is Compare for a file, which may be compressed with gzip, and cut off.
func CompareFile(ctx context.Context, path string) (*Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := unzipped(file, maxUnzipped)
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", path, err)
	}
	report, err := Compare(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("replay %s: %w", path, err)
	}
	return report, nil
}

// unzipped returns what a file holds, decompressed if it begins as gzip does. More than most bytes are an
// error.
func unzipped(file io.Reader, most int64) (io.Reader, error) {
	buffered := bufio.NewReader(file)
	if begin, _ := buffered.Peek(2); !bytes.Equal(begin, []byte{0x1f, 0x8b}) {
		return buffered, nil
	}
	text, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("nothing of it can be decompressed: %w", err)
	}
	return &limited{text, most}, nil
}

// limited is a reader that fails at its limit.
type limited struct {
	io.Reader

	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	n, err := l.Reader.Read(b[:min(int64(len(b)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return 0, errors.New("it is too large; decompress it, and replay a part of it")
	}
	return n, err
}

// T is the part of testing.TB that Check needs.
type T interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Check is CompareFile for a test, which fails at every difference.
func Check(t T, path string) {
	t.Helper()
	report, err := CompareFile(t.Context(), path)
	if err != nil {
		t.Fatalf("%v", err)
		return
	}
	for _, d := range report.Differences {
		t.Errorf("%s: %s", path, d)
	}
}

func (d Difference) String() string {
	field := ""
	if d.Field != "" {
		field = " of " + d.Field
	}
	return fmt.Sprintf("call %d, %s %s: %s%s: recorded %s, emulated %s", d.Call, d.Method, d.Arguments, d.Kind, field, d.Recorded, d.Emulated)
}

// newNode builds the emulated node that a recording describes: exactly the node that was recorded if that
// was an emulated one with names, otherwise one like the machine.
func newNode(recording *record.Recording, h *history) (node *winsim.Node, notes []string, err error) {
	d := recording.Description
	if len(d.Snapshot) > 0 {
		node, err = winsim.FromSnapshot(d.Snapshot)
		return node, nil, err
	}
	described := *d
	described.Services = servicesOf(d, recording.Calls)
	return winsim.FromDescription(described, func(m *winsim.Model) { learn(m, h, recording.Calls) })
}

// playback is one replay.
type playback struct {
	node    *winsim.Node
	machine win.Machine // the node, whose calls are watched
	made    record.Call // the last call
	started time.Time
	calls   []record.Call
	nested  map[int][]record.Call // the calls during a ListDirectory, by the number of its directory
	depth   int                   // how many listings call this one
	inner   error                 // of a call during a listing
	deep    bool                  // a note says that there were too many
	open    map[int]win.Tree      // by the numbers of the recording; most are win.Directory
	renamed map[string]json.RawMessage
	offset  time.Duration // of the node's clock
	hashed  bool
	events  []event             // that have not happened yet
	unknown map[win.Device]bool // disks that the node lacks, because the calls do not tell enough
	files   outsider
	report  Report
}

func newPlayback(ctx context.Context, recording *record.Recording, node *winsim.Node, h *history) (*playback, error) {
	p := &playback{
		node: node, calls: recording.Calls, files: outsider{history: h, node: node, strayed: map[string]bool{}}, started: recording.Header.Started, hashed: recording.Header.Hashed,
		nested: map[int][]record.Call{}, open: map[int]win.Tree{}, renamed: map[string]json.RawMessage{},
		offset: node.Now().Sub(recording.Header.Started),
		report: Report{
			Program: recording.Header.Program, Windows: recording.Header.Windows,
			Differences: []Difference{}, Skipped: []Skip{}, Outside: []Change{}, Notes: []string{},
		},
	}
	if len(recording.Description.Snapshot) > 0 {
		p.offset = 0 // its clock continues
	}
	p.machine = record.Watch(node, func(c record.Call) { p.made = c })
	var err error
	if p.events, p.unknown, err = plan(ctx, recording, node, p.calls); err != nil {
		return nil, err
	}
	if recording.Lost > 0 {
		p.note("%d lines of the recording are missing; what their calls did can make differences", recording.Lost)
	}
	if recording.Truncated {
		p.note("the recording is cut off, as by a kill or a full disk; the %d calls before the cut are used", len(recording.Calls))
	}
	return p, nil
}

func (p *playback) note(format string, args ...any) {
	p.report.Notes = append(p.report.Notes, short(fmt.Sprintf(format, args...)))
}

func (p *playback) skip(c record.Call, reason string) {
	p.report.Skipped = append(p.report.Skipped, Skip{c.Seq, c.Method, short(reason)})
}

// run makes all calls.
func (p *playback) run(ctx context.Context) error {
	p.calls = p.nest(p.calls)
	for _, c := range p.calls {
		if err := p.make(ctx, c); err != nil {
			return err
		}
	}
	for _, list := range slices.Sorted(maps.Keys(p.nested)) {
		for _, c := range p.nested[list] {
			p.skip(c, fmt.Sprintf("the emulated node did not list directory %d", list))
		}
	}
	return nil
}

// nest moves the calls that were made in a directory while it was listed to nested. There they can be
// made while the node lists it.
func (p *playback) nest(calls []record.Call) (rest []record.Call) {
	lists := map[int]int{} // the directory that was listed, by the numbers of those opened in it
	for _, c := range calls {
		if list, ok := listed(c); ok && list.Directory != 0 {
			lists[list.Directory] = list.Directory
		}
	}
	for _, c := range calls {
		top, during := lists[c.On]
		if !during {
			rest = append(rest, c)
			continue
		}
		p.nested[top] = append(p.nested[top], c)
	}
	return rest
}

// happen makes the events happen that were before a call.
func (p *playback) happen(seq uint64) {
	for ; len(p.events) > 0 && p.events[0].after < seq; p.events = p.events[1:] {
		e := p.events[0]
		if err := e.do(); err != nil {
			p.note("after call %d %s, but not on the emulated node: %v", e.after, e.what, err)
			continue
		}
		p.note("after call %d %s", e.after, e.what)
	}
}

// make makes a call and compares the answer.
func (p *playback) make(ctx context.Context, c record.Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.happen(c.Seq)
	due := p.started.Add(p.offset + time.Duration(c.Start)*time.Microsecond)
	if wait := due.Sub(p.node.Now()); wait > 0 {
		if err := p.node.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	var (
		reason string
		err    error
	)
	switch {
	case p.isAboutUnknown(c):
		reason = "the emulated node does not have the disk"
	case hasLongPath(c):
		reason = fmt.Sprintf("a path of it has more than %d units, which Windows does not take", winpath.MaxName)
	default:
		p.files.before(c)
		reason, err = p.perform(ctx, c)
	}
	switch {
	case err != nil:
		return fmt.Errorf("call %d, %s %s: %w", c.Seq, c.Method, text(c.In), err)
	case reason == "" && c.Error != nil && c.Error.Context != "":
		reason = "its caller had left"
	// An internal error is an answer that a decoder has refused, so the call was made. A kind that this program
	// does not know counts as one.
	case reason == "" && c.Error != nil && c.Error.Kind != "" && winerr.KindOf(c.Error.Err()) != winerr.Internal:
		reason = "it was not made: " + c.Error.Kind
	case reason == "" && c.Error == nil && p.made.Error == nil && isCut(c):
		reason = "the recording has only the first entries of the directory"
	}
	if reason != "" {
		p.skip(c, reason)
		return nil
	}
	p.report.Calls++
	p.compare(c, p.made)
	p.files.made(c, p.made)
	return nil
}

// isAboutUnknown reports whether a call is about a disk that the node lacks.
func (p *playback) isAboutUnknown(c record.Call) bool {
	var in struct{ D win.Device }
	return len(p.unknown) > 0 && len(c.In) > 0 && json.Unmarshal(c.In, &in) == nil && p.unknown[in.D]
}
