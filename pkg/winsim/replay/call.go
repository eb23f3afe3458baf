package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/record"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// maxRead is the longest read from a device that is replayed.
const maxRead = 16 << 20

// wrongSecret is sent instead of the secret where the recorded one was refused.
const wrongSecret = "not the secret"

// methods are those that are recorded.
var methods = recordedMethods()

func recordedMethods() map[string]bool {
	names := map[string]bool{}
	for _, seam := range []reflect.Type{reflect.TypeFor[win.Machine](), reflect.TypeFor[win.Directory]()} {
		for method := range seam.Methods() {
			names[method.Name] = true
		}
	}
	delete(names, "Now")
	delete(names, "Sleep")
	return names
}

// skipUnknown removes the calls of methods that the seam does not have, as a newer program can record them.
func skipUnknown(recording *record.Recording) (skipped []Skip) {
	recording.Calls = slices.DeleteFunc(recording.Calls, func(c record.Call) bool {
		if methods[c.Method] {
			return false
		}
		skipped = append(skipped, Skip{c.Seq, short(c.Method), noSuchCall})
		return true
	})
	return skipped
}

const noSuchCall = "the seam has no such call"

// perform makes a recorded call. It returns a reason if the call cannot be made, and an error if the
// recording is wrong.
func (p *playback) perform(ctx context.Context, c record.Call) (reason string, err error) {
	receiver := reflect.ValueOf(&p.machine).Elem()
	if c.On != 0 {
		tree, open := p.open[c.On]
		if !open {
			return fmt.Sprintf("directory %d is not open on the emulated node", c.On), nil
		}
		directory, isDirectory := tree.(win.Directory)
		if receiver = reflect.ValueOf(&tree).Elem(); isDirectory {
			receiver = reflect.ValueOf(&directory).Elem()
		}
	}
	method := receiver.MethodByName(c.Method)
	if !method.IsValid() {
		return noSuchCall, nil // of a directory, or of the machine
	}
	// The recording comes from outside: what it makes the node do must not end the program.
	defer func() {
		if r := recover(); r != nil {
			reason, err = "", errors.New(short(fmt.Sprintf("the emulated node cannot make it: %v", r)))
		}
	}()
	if c.Method == "Close" {
		delete(p.open, c.On)
		method.Call(nil)
		return "", nil
	}
	arguments, err := p.arguments(ctx, c, method.Type())
	if err != nil {
		return "", err
	}
	results := method.Call(arguments)
	if p.inner != nil {
		return "", p.inner
	}
	if opened, ok := reflect.TypeAssert[win.Directory](results[0]); ok && len(results) == 2 {
		p.keep(c, opened)
	}
	return "", nil
}

// keep remembers a directory under the number that the recording gives it.
func (p *playback) keep(c record.Call, opened win.Directory) {
	var number int
	if c.Error != nil || json.Unmarshal(c.Out, &number) != nil {
		made := p.made
		opened.Close()
		p.made = made // the answer is that of the open
		return
	}
	p.open[number] = opened
}

// arguments decodes the arguments of a call for a method.
func (p *playback) arguments(ctx context.Context, c record.Call, method reflect.Type) ([]reflect.Value, error) {
	values, err := inOrder(c.In)
	if err != nil {
		return nil, err
	}
	arguments := []reflect.Value{reflect.ValueOf(ctx)}
	for i := 1; i < method.NumIn(); i++ {
		kind := method.In(i)
		if kind.Kind() == reflect.Func {
			arguments = append(arguments, reflect.ValueOf(p.during(ctx, c)))
			continue
		}
		if i > len(values) {
			return nil, fmt.Errorf("it has %d arguments, and the call needs more", len(values))
		}
		argument := reflect.New(kind)
		if kind == reflect.TypeFor[[]byte]() {
			var length int
			if err := json.Unmarshal(values[i-1], &length); err != nil || length < 0 || length > maxRead {
				return nil, fmt.Errorf("%s is not the length of a read", text(values[i-1]))
			}
			argument.Elem().SetBytes(make([]byte, length))
		} else if err := json.Unmarshal(p.translated(kind, values[i-1]), argument.Interface()); err != nil {
			return nil, err
		}
		setSecret(argument.Elem(), c.Error)
		arguments = append(arguments, argument.Elem())
	}
	return arguments, nil
}

// inOrder returns the values of an object in their order.
func inOrder(object json.RawMessage) ([]json.RawMessage, error) {
	if len(object) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('{') {
		return nil, fmt.Errorf("%s are not arguments", text(object))
	}
	var values []json.RawMessage
	for decoder.More() {
		var value json.RawMessage
		if _, err := decoder.Token(); err != nil {
			return nil, err
		}
		if err := decoder.Decode(&value); err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

// translated replaces a session id or time of the recording by that of the emulated node.
func (p *playback) translated(kind reflect.Type, value json.RawMessage) json.RawMessage {
	if kind == reflect.TypeFor[win.SessionID]() || kind == reflect.TypeFor[time.Time]() {
		if own, ok := p.renamed[string(value)]; ok {
			return own
		}
	}
	return value
}

// setSecret sets a secret, which is not in the recording: the one of the emulated node, or a wrong one if
// the recorded one was refused.
func setSecret(v reflect.Value, failure *record.Failure) {
	secret := win.NewSecret(winsim.HiddenSecret)
	if failure != nil && winerr.KindOf(failure.Err()) == winerr.Denied {
		secret = win.NewSecret(wrongSecret)
	}
	switch argument := v.Addr().Interface().(type) {
	case *win.Secret:
		*argument = secret
	case *win.Login:
		argument.Secret = secret
	case *win.SMBMappingRequest:
		argument.Password = secret
	}
}

// listing is the recorded result of ListDirectory.
type listing struct {
	Directory int
	Batches   [][]win.DirEntry
	Cut       bool
	Stopped   bool
}

// isPart reports whether the directory can have entries that are not in the list.
func (l listing) isPart() bool { return l.Cut || l.Stopped }

func isCut(c record.Call) bool {
	list, ok := listed(c)
	return ok && list.Cut
}

func listed(c record.Call) (list listing, ok bool) {
	return list, c.Method == "ListDirectory" && json.Unmarshal(c.Out, &list) == nil
}

// maxDepth is how deep listings within listings are replayed. Each takes a part of the stack, and a program
// whose stack is full ends.
const maxDepth = 128

// during returns what is called while the node lists a directory: it makes the calls that were recorded
// then, when the node gives the first entries.
func (p *playback) during(ctx context.Context, c record.Call) func(win.Tree, []win.DirEntry) error {
	list, _ := listed(c)
	return func(dir win.Tree, _ []win.DirEntry) error {
		if list.Directory == 0 {
			return nil
		}
		p.open[list.Directory] = dir
		calls := p.nested[list.Directory]
		delete(p.nested, list.Directory)
		if p.depth == maxDepth {
			p.tooDeep(calls)
			return nil
		}
		p.depth++
		defer func() { p.depth-- }()
		for _, inner := range calls {
			if p.inner = p.make(ctx, inner); p.inner != nil {
				return p.inner
			}
		}
		return nil
	}
}

// tooDeep skips the calls during a listing that is too deep in others.
func (p *playback) tooDeep(calls []record.Call) {
	for _, c := range calls {
		p.skip(c, fmt.Sprintf("it was made in more than %d listings within listings", maxDepth))
	}
	if !p.deep && len(calls) > 0 {
		p.deep = true
		p.note("listings within listings are replayed up to %d deep; the calls further down are skipped", maxDepth)
	}
}

// text is JSON for a report.
func text(value json.RawMessage) string {
	if len(value) == 0 {
		return "nothing"
	}
	return short(string(value))
}

// short cuts a long text.
func short(text string) string {
	const most = 300
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
