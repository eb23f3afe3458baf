// Package record writes the calls to a machine into a file, one JSON line each. It shows a developer who does not
// have the machine what Windows has answered there.
//
// A recording never holds a secret: win.Secret does not print, and errors of calls with a secret are recorded
// without their text. Of what was read from a disk it has only the length.
package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/version"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/protected"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// DefaultMaxBytes is how large a recording becomes, unless Config says otherwise.
	DefaultMaxBytes = 64 << 20
	// room is for the header, a call and the last line. With less a recording does not begin.
	room = 4 << 10
	// lastLine is room for the line that says that the file is full.
	lastLine = 256

	kind   = "csi-proxy calls"
	marker = `{"recording":"` + kind + `",` // begins every recording
)

// Config says what to record, and where.
type Config struct {
	// Path is the file. A recording of an earlier run is continued; any other content is refused.
	Path string
	// MaxBytes is the size at which the recording ends; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Windows is the build of the machine, for the header.
	Windows string
}

// line is a header, which each start writes, a call, or the last line.
type line struct {
	Recording string         `json:"recording,omitzero"`
	Program   string         `json:"program,omitzero"` // its version
	Windows   string         `json:"windows,omitzero"`
	Time      time.Time      `json:"time"` // when the call began; lines are in the order in which calls end
	Method    string         `json:"method,omitzero"`
	Entry     string         `json:"entry,omitzero"` // the path of what a call in an open directory is about
	Args      map[string]any `json:"args,omitempty"`
	Result    any            `json:"result,omitempty"`
	Error     *failure       `json:"error,omitzero"`
	Took      int64          `json:"us,omitzero"`
	Lost      int            `json:"lost,omitzero"` // so many calls before this one could not be written
	End       string         `json:"end,omitzero"`  // why it is the last line
}

type failure struct {
	Code uint32 `json:"code,omitzero"` // of Windows
	Kind string `json:"kind"`
	Text string `json:"text,omitzero"` // left out if the call has a secret, which it could repeat
}

// Recorder writes calls into a file.
type Recorder struct {
	log   klog.Logger
	limit int64
	ended atomic.Bool

	mu     sync.Mutex
	file   io.WriteCloser
	size   int64
	torn   bool // the last line is incomplete, as a full disk or a kill leaves it
	lost   int
	failed bool // and the log says so
}

// Attach records the calls to a machine through the one that it returns, until stop. Pods need the node's storage, and
// no pod needs a recording: if there can be none, the log says so, and the machine is returned as it is.
func Attach(ctx context.Context, m win.Machine, cfg Config) (recorded win.Machine, stop func()) {
	r, err := Open(ctx, cfg)
	if err != nil {
		klog.FromContext(ctx).Error(err, "No calls are recorded. Remove the cause or choose another file, and restart; or remove -record-calls", "file", cfg.Path)
		return m, func() {}
	}
	return win.Intercept(m, r.Intercept), func() { _ = r.Close() } // every line has been written
}

// Open begins a recording, or continues that of an earlier run. What goes wrong later goes to the log of ctx, once,
// and disturbs no call.
func Open(ctx context.Context, cfg Config) (*Recorder, error) {
	if err := protected.MkdirAll(filepath.Dir(cfg.Path)); err != nil {
		return nil, fmt.Errorf("create the directory of the recording: %w", err)
	}
	file, err := protected.OpenFile(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("create the recording: %w", err)
	}
	r := &Recorder{log: klog.FromContext(ctx).WithValues("file", cfg.Path), limit: cmp.Or(cfg.MaxBytes, DefaultMaxBytes), file: file}
	if r.size, r.torn, err = inspect(file); err == nil && r.size+room > r.limit {
		err = fmt.Errorf("it is full: it has %d bytes, and may have %d; delete it, move it away, or raise the limit", r.size, r.limit)
	}
	if err == nil {
		err = r.put(line{Recording: kind, Program: version.String(), Windows: cfg.Windows, Time: time.Now().UTC()}, r.limit)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("record calls in %s: %w", cfg.Path, err)
	}
	return r, nil
}

// inspect refuses a file that has other content than a recording, and reports whether its last line is incomplete.
func inspect(file *os.File) (size int64, torn bool, err error) {
	first, last := make([]byte, len(marker)), make([]byte, 1)
	n, err := file.ReadAt(first, 0)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, false, err
	case n < len(marker) && strings.HasPrefix(marker, string(first[:n])): // nothing, or what a full disk has left of a header
		return 0, false, os.Truncate(file.Name(), 0)
	case string(first) != marker:
		return 0, false, errors.New("it has other content, which is kept; choose another file, or move this one away")
	}
	if size, err = file.Seek(0, io.SeekEnd); err == nil {
		_, err = file.ReadAt(last, size-1)
	}
	return size, last[0] != '\n', err
}

// Intercept makes a call and writes its line. It is a win.Interceptor.
func (r *Recorder) Intercept(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	if r.ended.Load() {
		return next(ctx)
	}
	start := time.Now()
	err := next(ctx)
	l := line{Time: start.UTC(), Method: c.Method, Entry: c.Entry(), Took: time.Since(start).Microseconds()}
	var secret bool
	l.Args, secret = arguments(c.Args(), l.Entry != "")
	if err == nil {
		l.Result = shown(c.Result)
	} else if l.Error = (&failure{Code: uint32(winerr.CodeOf(err)), Kind: winerr.KindOf(err).String()}); !secret {
		l.Error.Text = err.Error()
	}
	r.write(l)
	return err
}

// Close ends the recording. The machine goes on without it.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended.Swap(true) {
		return nil // it was full
	}
	return r.file.Close()
}

// secretTypes are the arguments of the seam that have a secret. A test looks for others.
var secretTypes = []reflect.Type{reflect.TypeFor[win.Secret](), reflect.TypeFor[win.Login](), reflect.TypeFor[win.SMBMappingRequest]()}

// arguments returns the arguments of a call by name, and whether one has a secret. In a directory, the name is in the
// entry already.
func arguments(args []win.Arg, inDirectory bool) (byName map[string]any, secret bool) {
	byName = map[string]any{}
	for _, a := range args {
		secret = secret || slices.Contains(secretTypes, reflect.TypeOf(a.Value))
		if path, ok := a.Value.(win.Path); ok && path.Rest != "" {
			byName["base"] = path.Base // links are followed up to there
		}
		if !inDirectory || a.Name != "name" {
			byName[a.Name] = shown(a.Value)
		}
	}
	return byName, secret
}

// shown is a value as a line has it: of data only the length, and paths as text, in which names are found that are to
// be hidden.
func shown(value any) any {
	switch value := value.(type) {
	case win.Path:
		return value.String()
	case []byte:
		return fmt.Sprintf("%d bytes", len(value))
	case *[]byte:
		return shown(*value)
	default:
		return value
	}
}

// write writes the line of a call, or the last line if the file is full.
func (r *Recorder) write(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended.Load() {
		return
	}
	l.Lost = r.lost
	switch err := r.put(l, r.limit-lastLine); {
	case err == nil:
		r.lost = 0
	case errors.Is(err, errFull):
		r.ended.Store(true)
		_ = r.put(line{Time: time.Now().UTC(), Lost: r.lost, End: fmt.Sprintf("the recording is full: it may have %d bytes", r.limit)}, r.limit)
		_ = r.file.Close()
		r.log.Info("The recording of calls is full, and has ended. To record more, move it away and restart", "bytes", r.limit)
	default:
		r.lost++
		if !r.failed {
			r.log.Error(err, "Cannot record calls; they go on without it")
		}
		r.failed = true
	}
}

var errFull = errors.New("the recording is full")

// put writes a line, unless the file then has more than most bytes. It first ends a line that is incomplete. r.mu is
// held.
func (r *Recorder) put(value any, most int64) error {
	var text bytes.Buffer
	if r.torn {
		text.WriteByte('\n')
	}
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // devices have names with &
	if err := encoder.Encode(value); err != nil {
		return err
	}
	if r.size+int64(text.Len()) > most {
		return errFull
	}
	n, err := r.file.Write(text.Bytes())
	r.size += int64(n)
	if n > 0 {
		r.torn = n < text.Len()
	}
	return err
}
