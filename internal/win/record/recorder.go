// Package record writes the calls to a machine into a file, one JSON line each, and reads them back.
//
// A recording lets a machine that we never see teach us: it says what Windows has answered. It begins
// with a header and a description of the machine, from which pkg/winsim/replay builds an emulated node
// and compares its answers. A Player answers from a recording in a test.
//
// A recording never holds a secret: win.Secret does not print, and errors of calls with a secret are
// recorded without their text. Names and serial numbers are hashed on request.
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// DefaultMaxBytes is how large the files of a recording become together, unless options say otherwise.
const DefaultMaxBytes = 64 << 20

// Options say what a recording holds. The zero value is a recording with names.
type Options struct {
	// Program is the version of the program, and Windows the build of the machine, for the header.
	Program, Windows string
	// Hash replaces names and serial numbers by hashes, and leaves out data and raw bytes.
	Hash bool
	// MaxBytes is how large a recording may become. 0 means DefaultMaxBytes.
	MaxBytes int64
	// Services are the services to describe.
	Services []string
	// Failed is called once if the recording cannot be written, and must be quick; it may be nil.
	Failed func(error)
}

// Recorder writes the calls to a machine. All methods may be called concurrently.
type Recorder struct {
	below   win.Machine
	options Options
	hasher  *hasher    // nil if names are not hashed
	watch   func(Call) // gets the calls instead of the file; nil if there is a file
	started time.Time

	mu      sync.Mutex
	out     io.Writer                 // nil after the end
	next    func() (io.Writer, error) // starts another file when one is full; nil if there is only one
	size    int64                     // of the current file
	limit   int64                     // of each file
	seq     uint64
	handles int
	lost    uint64
	reason  string // of the loss
	failed  bool
	headed  bool // the file begins with a header
	torn    bool // its last line is incomplete
	closing bool
	again   sync.WaitGroup // descriptions for another file
}

// New begins a recording of a machine with the header and a description, for which it asks the machine.
// Ctx limits the description. Only Write of the writer is used, once per line; it is not closed.
func New(ctx context.Context, m win.Machine, w io.Writer, o Options) *Recorder {
	r := newRecorder(m, o)
	r.out = w
	r.begin(ctx, false)
	return r
}

func newRecorder(m win.Machine, o Options) *Recorder {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	r := &Recorder{below: m, options: o, limit: o.MaxBytes, started: m.Now()}
	if o.Hash {
		r.hasher = newHasher()
	}
	return r
}

// Watch returns a machine whose calls are given to each, with what they answered, and not written.
func Watch(m win.Machine, each func(Call)) win.Machine {
	r := newRecorder(m, Options{})
	r.watch = each
	return r.Machine()
}

// Machine returns the machine whose calls are recorded.
func (r *Recorder) Machine() win.Machine { return machine{r, r.below} }

// Close ends the recording. The machine goes on without it.
func (r *Recorder) Close() {
	r.mu.Lock()
	r.closing = true
	r.mu.Unlock()
	r.again.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = nil
}

// begin writes the first lines of a file.
func (r *Recorder) begin(ctx context.Context, later bool) {
	r.mu.Lock()
	r.writeHeader(later)
	r.mu.Unlock()
	r.describe(ctx)
}

// writeHeader starts a file. Nothing may come before it, not even a note of what was lost. r.mu is held.
func (r *Recorder) writeHeader(later bool) bool {
	r.headed = r.put(r.header(later))
	return r.headed
}

// header is the first line of a file.
func (r *Recorder) header(later bool) []byte {
	text, _ := marshal(line{Header: &Header{ // texts and a time
		Format: format, Version: version, Program: r.options.Program, Windows: r.options.Windows,
		Started: r.started, Hashed: r.options.Hash, Later: later,
	}})
	return append(text, '\n')
}

// describe writes a description of the machine.
func (r *Recorder) describe(ctx context.Context) {
	d := Describe(ctx, r.below, r.options.Services)
	if r.hasher != nil {
		d = r.hasher.hashed(d, aName).(Description) //nolint:forcetypeassert // it is a copy
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d.Seq = r.seq
	r.writeLine(line{Description: &d}) //nolint:contextcheck // a later file has a description with a time limit of its own
}

// Now is the machine's time.
func (r *Recorder) Now() time.Time { return r.below.Now() }

// Sleep waits on the machine.
func (r *Recorder) Sleep(ctx context.Context, d time.Duration) error { return r.below.Sleep(ctx, d) }

// handle implements conductor.
func (r *Recorder) handle() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handles++
	return r.handles
}

// do makes a call and writes its line.
func (r *Recorder) do(on int, method string, arguments in, result any, call func() error) error {
	r.mu.Lock()
	r.seq++
	start := r.below.Now()
	c := Call{Seq: r.seq, On: on, Method: method, Start: start.Sub(r.started).Microseconds()}
	r.mu.Unlock()

	err := call()

	c.Took = r.below.Now().Sub(start).Microseconds()
	c.Error = failureOf(err)
	if c.Error != nil {
		result = nil
		if r.hasher != nil || holdsSecret(arguments) {
			c.Error.Text = ""
		}
	}
	r.write(c, arguments, result)
	return err
}

// write writes the line of a call.
func (r *Recorder) write(c Call, arguments in, result any) {
	if r.hasher != nil {
		arguments = r.hasher.arguments(c.Method, arguments)
		result = r.hasher.hashed(result, contents[c.Method])
	}
	var err error
	if len(arguments) > 0 {
		c.In, err = marshal(arguments)
	}
	if err == nil && result != nil {
		c.Out, err = marshal(result)
	}
	if r.watch != nil && err == nil {
		r.watch(c)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.lose(err)
		return
	}
	r.writeLine(line{Call: &c})
}

// holdsSecret reports whether an argument is or has a secret, whose text an error could repeat.
func holdsSecret(arguments in) bool {
	return slices.ContainsFunc(arguments, func(a argument) bool { return secretTypes[reflect.TypeOf(a.value)] })
}

// secretTypes are the arguments of the seam that have a secret. A test looks for others.
var secretTypes = map[reflect.Type]bool{
	reflect.TypeFor[win.Secret]():            true,
	reflect.TypeFor[win.Login]():             true,
	reflect.TypeFor[win.SMBMappingRequest](): true,
}

// writeLine writes a line, in another file if this one is full. A line that no file can hold is lost. r.mu is held.
func (r *Recorder) writeLine(l line) {
	if r.out == nil {
		return
	}
	text, err := marshal(l)
	if err != nil {
		r.lose(err)
		return
	}
	text = append(text, '\n')
	var note []byte
	if r.lost > 0 {
		note, _ = json.Marshal(line{Lost: &lost{r.lost, r.reason}}) //nolint:errchkjson // numbers and texts
		note = append(note, '\n')
	}
	length := int64(len("\n") + len(note) + len(text)) // the first one ends a torn line
	if !r.headed || r.size+length > r.limit {
		if room := r.limit - int64(len(r.header(true))); length > room {
			r.lose(winerr.New(winerr.NoSpace, "record a call", "", "its line has %d bytes, and a file has room for %d; raise the limit", len(text), room))
			return
		}
		if !r.exchange(l) {
			return
		}
	}
	if note != nil {
		if !r.put(note) {
			r.lost++
			return
		}
		r.lost, r.reason = 0, ""
	}
	if !r.put(text) {
		r.lost++
	}
}

// exchange starts another file, or ends the recording. r.mu is held.
func (r *Recorder) exchange(l line) bool {
	if r.next == nil {
		r.fail(fmt.Errorf("it has reached its size of %d bytes", r.limit))
		r.out = nil
		return false
	}
	out, err := r.next()
	if err != nil {
		r.lose(err)
		r.headed = false // the file is closed: the next line tries again
		return false
	}
	r.out, r.size, r.torn = out, 0, false
	if !r.writeHeader(true) {
		r.lost++
		return false
	}
	if r.closing || l.Description != nil {
		return true
	}
	r.again.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), describeTimeout) //nolint:forbidigo // no caller waits for it
		defer cancel()
		r.describe(ctx)
	})
	return true
}

// put writes a line to the file. After an incomplete one, as a full disk leaves it, it first ends that
// line. r.mu is held.
func (r *Recorder) put(text []byte) bool {
	if r.torn {
		text = append([]byte{'\n'}, text...)
	}
	n, err := r.out.Write(text)
	r.size += int64(n)
	if n > 0 {
		r.torn = n < len(text)
	}
	if err != nil {
		r.reason = r.reasonOf(err)
		r.fail(err)
		return false
	}
	return true
}

// lose counts a line that is missing. r.mu is held.
func (r *Recorder) lose(err error) {
	r.lost++
	r.reason = r.reasonOf(err)
	r.fail(err)
}

// reasonOf is an error as a recording has it. Among hashes it is without the path of the recording.
func (r *Recorder) reasonOf(err error) string {
	if r.hasher == nil {
		return err.Error()
	}
	if code := syscall.Errno(0); errors.As(err, &code) {
		return code.Error()
	}
	return winerr.KindOf(err).String()
}

// fail reports the first failure.
func (r *Recorder) fail(err error) {
	if !r.failed && r.options.Failed != nil {
		r.options.Failed(err)
	}
	r.failed = true
}
