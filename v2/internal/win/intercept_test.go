package win_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// passed are the methods that no interceptor sees.
var passed = []string{"Now", "Elapsed", "Sleep", "Close", "StuckChange", "Announce", "Process"}

// bottom is a machine that only opens directories. Its other methods would panic.
type bottom struct {
	win.Machine
	closed *int
}

func (b bottom) OpenDirectory(context.Context, win.Path) (win.Directory, error) {
	return bottomDirectory{closed: b.closed}, nil
}

func (bottom) Now() time.Time { return time.Unix(7, 0) }

func (bottom) Elapsed() time.Duration { return 7 }

func (bottom) Sleep(context.Context, time.Duration) error { return errors.New("awake") }

type bottomDirectory struct {
	win.Directory
	closed *int
}

func (d bottomDirectory) Open(context.Context, string) (win.Directory, error) { return d, nil }

func (d bottomDirectory) Close() { *d.closed++ }

func (d bottomDirectory) ListDirectory(context.Context, string) (win.Listing, error) { return d, nil }

// Next lists nothing.
func (bottomDirectory) Next(context.Context) ([]win.DirEntry, error) { return nil, nil }

func (d bottomDirectory) SetMountPoint(context.Context, string, win.VolumeID) error { return nil }

func (d bottomDirectory) DeleteMountPoint(context.Context, string) error {
	*d.closed++
	return nil
}

// answer is an interceptor that makes up the results of all methods but those that open directories.
func answer(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	if slices.Contains([]string{"OpenDirectory", "Open", "ListDirectory"}, c.Method) {
		return next(ctx)
	}
	if c.Result != nil {
		fill(reflect.ValueOf(c.Result).Elem(), c.Method)
	}
	return nil
}

// fill sets every text and number in a value.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[win.Secret]():
			v.Set(reflect.ValueOf(win.NewSecret(text)))
		case reflect.TypeFor[time.Time]():
			v.Set(reflect.ValueOf(time.Unix(int64(len(text)), 0)))
		default:
			for i := range v.NumField() {
				fill(v.Field(i), text+" "+v.Type().Field(i).Name)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.Array:
		fill(v.Index(0), text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Func: // which are not compared
	default:
		panic(fmt.Sprintf("%s has a type that fill does not know: %s", text, v.Type()))
	}
}

// part is a machine, a directory or a tree, and the path by which it was opened.
type part struct {
	path string
	reflect.Value
}

// parts returns a machine, a directory that it opens, and the tree of a listing.
func parts(t *testing.T, m win.Machine) []part {
	t.Helper()
	dir, err := m.OpenDirectory(t.Context(), win.Path{Base: `C:\`, Rest: `a\b`})
	require.NoError(t, err)
	found := []part{{"", reflect.ValueOf(&m).Elem()}, {`C:\a\b`, reflect.ValueOf(&dir).Elem()}}
	listed, err := dir.ListDirectory(t.Context(), "c")
	require.NoError(t, err)
	return append(found, part{`C:\a\b\c`, reflect.ValueOf(&listed).Elem()})
}

// callAll calls every method of a part that an interceptor sees, and gives each what it got and was given.
func callAll(ctx context.Context, p part, each func(method string, arguments, results []reflect.Value)) {
	for i := range p.NumMethod() {
		method := p.Type().Method(i)
		if slices.Contains(passed, method.Name) {
			continue
		}
		arguments := []reflect.Value{reflect.ValueOf(ctx)}
		for j := 1; j < method.Type.NumIn(); j++ {
			argument := reflect.New(method.Type.In(j)).Elem()
			fill(argument, fmt.Sprint("argument ", j))
			arguments = append(arguments, argument)
		}
		each(method.Name, arguments, p.Method(i).Call(arguments))
	}
}

// TestIntercept_EveryMethod: each method of the seam, found by reflection, is one call, with its arguments, its
// context and its result.
func TestIntercept_EveryMethod(t *testing.T) {
	type key struct{}
	var calls []*win.Call
	below := win.Intercept(bottom{}, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		calls = append(calls, c)
		if ctx.Value(key{}) == nil {
			t.Errorf("%s has another context", c.Method)
		}
		return answer(ctx, c, next)
	})
	m := win.Intercept(below, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		calls = append(calls, c)
		return next(context.WithValue(ctx, key{}, true))
	})
	for _, p := range parts(t, m) {
		calls = nil
		callAll(t.Context(), p, func(method string, arguments, results []reflect.Value) {
			name := p.Type().String() + "." + method
			if len(calls) != 2 || calls[0].Method != method || calls[1].Method != method {
				t.Fatalf("%s: got %d calls, want one of each interceptor", name, len(calls))
			}
			for _, c := range calls {
				if got, want := c.Entry(), p.path+`\argument 1`; p.path == "" && got != "" || p.path != "" && got != want && method != "Next" {
					t.Errorf("%s is about %q, want %q", name, got, want)
				}
				for i, a := range c.Args() {
					if a.Name == "" || a.Name == "ctx" || fmt.Sprintf("%#v", a.Value) != fmt.Sprintf("%#v", arguments[i+1].Interface()) {
						t.Errorf("%s: argument %d is %+v, want %+v", name, i, a, arguments[i+1])
					}
				}
				if len(c.Args()) < len(arguments)-1 {
					t.Errorf("%s has the arguments %+v", name, c.Args())
				}
				if c.Result == nil && len(results) == 2 && !strings.HasPrefix(method, "Open") && method != "ListDirectory" {
					t.Errorf("%s shows no result", name)
				}
			}
			if err := results[len(results)-1]; !err.IsNil() {
				t.Errorf("%s: %v", name, err)
			}
			if len(results) == 2 && results[0].IsZero() {
				t.Errorf("%s returns %v", name, results[0])
			}
			if result := calls[0].Result; result != nil && len(results) == 2 && !reflect.DeepEqual(reflect.ValueOf(result).Elem().Interface(), results[0].Interface()) {
				t.Errorf("%s returns %+v, and shows %+v", name, results[0], reflect.ValueOf(result).Elem())
			}
			calls = nil
		})
	}
}

// TestIntercept_Refused: what an interceptor refuses does not reach the machine, which would panic, and its error
// reaches the caller.
func TestIntercept_Refused(t *testing.T) {
	refused := errors.New("refused")
	refuses := false
	m := win.Intercept(bottom{}, func(ctx context.Context, _ *win.Call, next func(context.Context) error) error {
		if refuses {
			return refused
		}
		return next(ctx)
	})
	all := parts(t, m)
	refuses = true
	for _, p := range all {
		callAll(t.Context(), p, func(method string, _, results []reflect.Value) {
			if err, _ := reflect.TypeAssert[error](results[len(results)-1]); !errors.Is(err, refused) || len(results) == 2 && !results[0].IsZero() {
				t.Errorf("%s returns %v", method, results)
			}
		})
	}
}

// TestIntercept_Entry: a directory that is opened in others, or lists itself, has the whole path.
func TestIntercept_Entry(t *testing.T) {
	var entries []string
	m := win.Intercept(bottom{closed: new(int)}, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		entries = append(entries, c.Method+" "+c.Entry())
		return answer(ctx, c, next)
	})
	dir, _ := m.OpenDirectory(t.Context(), win.Following(`C:\`))
	inner, _ := dir.Open(t.Context(), "a")
	listed, _ := inner.ListDirectory(t.Context(), "")
	listed, _ = listed.ListDirectory(t.Context(), "b")
	_ = listed.Remove(t.Context(), "c")
	for _, want := range []string{"OpenDirectory ", `Open C:\a`, `ListDirectory C:\a`, `ListDirectory C:\a\b`, `Remove C:\a\b\c`} {
		if !slices.Contains(entries, want) {
			t.Errorf("%q is not in %q", want, entries)
		}
	}
}

// TestIntercept_Passed: the clock and Close are those of the machine. What an interceptor makes fail afterwards, it can
// undo: a directory is closed, and a volume not mounted.
func TestIntercept_Passed(t *testing.T) {
	closed, fails := 0, false
	m := win.Intercept(bottom{closed: &closed}, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		if slices.Contains(passed, c.Method) {
			t.Errorf("%s is intercepted", c.Method)
		}
		err := next(ctx)
		if fails {
			c.Discard()
			err = errors.New("afterwards")
		}
		return err
	})
	if !m.Now().Equal(time.Unix(7, 0)) || m.Sleep(t.Context(), 0) == nil {
		t.Error("the clock is another one")
	}
	dir, _ := m.OpenDirectory(t.Context(), win.Following(`C:\`))
	fails = true
	if inner, err := dir.Open(t.Context(), "a"); inner != nil || err == nil || closed != 1 {
		t.Errorf("%v, %v, and %d directories are closed", inner, err, closed)
	}
	if err := dir.SetMountPoint(t.Context(), "a", ""); err == nil || closed != 2 {
		t.Errorf("%v, and %d are undone", err, closed)
	}
	if dir.Close(); closed != 3 {
		t.Errorf("%d directories are closed", closed)
	}
}

// TestIntercept_Hold: a directory stays open while a call holds it, although its caller has closed it.
func TestIntercept_Hold(t *testing.T) {
	closed := 0
	var held *win.Call
	m := win.Intercept(bottom{closed: &closed}, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		if c.Method == "SetMountPoint" {
			c.Hold()
			held = c
		}
		return next(ctx)
	})
	dir, _ := m.OpenDirectory(t.Context(), win.Following(`C:\`))
	_ = dir.SetMountPoint(t.Context(), "a", "")
	if dir.Close(); closed != 0 {
		t.Error("it is closed under a call")
	}
	if held.Release(); closed != 1 {
		t.Error("it stays open")
	}
}

// TestHangsOn: every call has a kind and an object, calls on one server, target or volume the same, and changes say what
// they do.
func TestHangsOn(t *testing.T) {
	points := map[string]win.HangPoint{}
	m := win.Intercept(bottom{closed: new(int)}, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		at := c.HangsOn()
		if at.Kind == "" || at.Object == "" {
			t.Errorf("%s hangs on %+v", c.Method, at)
		}
		if change := c.Change(); change != "" && (c.Asks() || strings.Count(change, "%s") != 1 || c.Changed() == "") {
			t.Errorf("%s is %q of %q", c.Method, change, c.Changed())
		}
		points[c.Method] = at
		return answer(ctx, c, next)
	})
	for _, p := range parts(t, m) {
		callAll(t.Context(), p, func(string, []reflect.Value, []reflect.Value) {})
	}
	const volume win.VolumeID = `\\?\Volume{00000000-0000-0000-0000-000000000001}\`
	_, _ = m.FileInfo(t.Context(), win.Path{Base: string(volume), Rest: "a"})
	_, _ = m.VolumeSpace(t.Context(), volume)
	if points["FileInfo"] != points["VolumeSpace"] {
		t.Errorf("a file of a volume hangs on %v, the volume on %v", points["FileInfo"], points["VolumeSpace"])
	}
	_, _ = m.SMBMapping(t.Context(), `\\Server\a`)
	_ = m.CreateSMBMapping(t.Context(), win.SMBMappingRequest{Remote: `\\server\b`})
	if points["SMBMapping"] != points["CreateSMBMapping"] || points["SMBMapping"].Object != "SERVER" {
		t.Errorf("mappings hang on %v and %v", points["SMBMapping"], points["CreateSMBMapping"])
	}
}

// TestIntercept_Cost: without an interceptor a machine is not wrapped, and one that only counts costs little: the
// call, its result and two closures.
func TestIntercept_Cost(t *testing.T) {
	if m := win.Machine(bottom{}); win.Intercept(m, nil) != m {
		t.Error("without an interceptor the machine is another one")
	}
	calls := 0
	m := win.Intercept(bottom{}, func(context.Context, *win.Call, func(context.Context) error) error {
		calls++
		return nil
	})
	path := win.Following(`C:\`)
	if allocations := testing.AllocsPerRun(100, func() { _, _ = m.FileInfo(t.Context(), path) }); allocations > 4 || calls == 0 {
		t.Errorf("%v allocations, %d calls", allocations, calls)
	}
}
