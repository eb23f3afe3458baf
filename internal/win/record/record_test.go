package record

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const planted = "xyzzy-plugh-42" // every secret, and what is on disks

// secretMethods are those with a secret. TestSecretTypes finds others.
var secretMethods = []string{"Login", "CreateSMBMapping", "SetInitiatorCHAPSharedSecret"}

// planter is a machine that makes up results. With fails, each call fails and repeats its arguments, secrets included.
func planter(fails bool) win.Machine {
	return win.Intercept(struct{ win.Machine }{}, func(_ context.Context, c *win.Call, _ func(context.Context) error) error {
		if fails && c.Method != "OpenDirectory" {
			return fmt.Errorf("%s: %w", planted, winerr.AccessDenied)
		}
		if c.Result != nil {
			fill(reflect.ValueOf(c.Result).Elem())
		}
		for _, a := range c.Args() {
			if b, ok := a.Value.([]byte); ok {
				copy(b, planted)
			}
		}
		return nil
	})
}

// fill sets the texts in a value, and plants secrets and data.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(`a\b`)
	case reflect.Struct:
		switch v.Type() {
		case reflect.TypeFor[win.Secret]():
			v.Set(reflect.ValueOf(win.NewSecret(planted)))
		case reflect.TypeFor[time.Time]():
		default:
			for i := range v.NumField() {
				field := v.Field(i)
				fill(field)
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]byte]() {
			v.SetBytes([]byte(planted))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	default:
	}
}

// callAll calls every method of a machine and of a directory that an interceptor sees, and returns their names.
func callAll(t *testing.T, m win.Machine) (methods []string) {
	t.Helper()
	dir, err := m.OpenDirectory(t.Context(), win.Path{Base: `C:\base`, Rest: "rest"})
	require.NoError(t, err)
	methods = append(methods, "OpenDirectory")
	for _, object := range []reflect.Value{reflect.ValueOf(&m).Elem(), reflect.ValueOf(&dir).Elem()} {
		for i := range object.NumMethod() {
			method := object.Type().Method(i)
			if slices.Contains([]string{"Now", "Elapsed", "Sleep", "Close", "OpenDirectory"}, method.Name) {
				continue
			}
			arguments := []reflect.Value{reflect.ValueOf(t.Context())}
			for j := 1; j < method.Type.NumIn(); j++ {
				argument := reflect.New(method.Type.In(j)).Elem()
				fill(argument)
				arguments = append(arguments, argument)
			}
			object.Method(i).Call(arguments)
			methods = append(methods, method.Name)
		}
	}
	return methods
}

// recorded begins a recording of the planter in a file.
func recorded(ctx context.Context, t *testing.T, path string, most int64) (win.Machine, *Recorder) {
	t.Helper()
	r, err := Open(ctx, Config{Path: path, MaxBytes: most, Windows: "10.0.20348"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Close() })
	return win.Intercept(planter(false), r.Intercept), r
}

// read returns a file, and its lines, which must be whole.
func read(t *testing.T, path string) (text string, lines []line) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(content), parse(t, string(content))
}

func parse(t *testing.T, text string) (lines []line) {
	t.Helper()
	for each := range strings.Lines(text) {
		var l line
		if err := json.Unmarshal([]byte(each), &l); err != nil || !strings.HasSuffix(each, "\n") {
			t.Errorf("%q is not a line: %v", each, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// TestRecorder_EveryMethod: each method of the seam, found by reflection, is one line.
func TestRecorder_EveryMethod(t *testing.T) {
	path := filepath.Join(t.TempDir(), "not", "there", "calls.jsonl")
	m, _ := recorded(t.Context(), t, path, 0)
	began := time.Now().Add(-time.Minute)
	methods := callAll(t, m)
	text, lines := read(t, path)
	if first := lines[0]; first.Recording != kind || first.Program == "" || first.Windows != "10.0.20348" || first.Time.Before(began) {
		t.Errorf("the header is %+v", first)
	}
	for i, l := range lines[1:] {
		if l.Method != methods[i] || l.Time.Before(began) || l.Error != nil {
			t.Errorf("%+v, want %s", l, methods[i])
		}
	}
	if len(lines) != len(methods)+1 || len(methods) < reflect.TypeFor[win.Machine]().NumMethod() {
		t.Errorf("%d lines of %d calls", len(lines), len(methods))
	}
	for _, want := range []string{
		`"method":"OpenDirectory","args":{"base":"C:\\base","path":"C:\\base\\rest"}`,
		`"method":"Remove","entry":"C:\\base\\rest\\a\\b"`,
		`"method":"CreateDirectoryLink","entry":"C:\\base\\rest\\a\\b","args":{"target":"a\\b"}`,
		`"method":"ListDirectory","entry":"C:\\base\\rest\\a\\b","result":0`,
		`"b":"14 bytes"`, // ReadDevice
		`"method":"FirmwareTable","result":"14 bytes"`,   // has serial numbers that no pattern finds
		`"method":"BIOSSerialNumber","result":"a\\b"`,    // a text
		`"request":{"Remote":"a\\b","User":"a\\b","Pass`, // request of CreateSMBMapping
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, planted) {
		t.Errorf("a secret or data is in\n%s", text)
	}
}

// TestRecorder_Secrets: no line has a secret in any form, also if an error repeats it.
func TestRecorder_Secrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	_, r := recorded(t.Context(), t, path, 0)
	callAll(t, win.Intercept(planter(true), r.Intercept))
	callAll(t, win.Intercept(planter(false), r.Intercept))
	text, lines := read(t, path)
	found := map[string]int{}
	for i, each := range strings.Split(strings.TrimSpace(text), "\n") {
		l := lines[i]
		found[l.Method]++
		if l.Error != nil && (l.Error.Code != uint32(winerr.AccessDenied) || l.Error.Kind != winerr.AccessDenied.Kind().String()) {
			t.Errorf("%s: the error is %+v", l.Method, l.Error)
		}
		if !slices.Contains(secretMethods, l.Method) {
			if l.Error != nil && !strings.Contains(l.Error.Text, planted) {
				t.Errorf("%s: the error lacks its text: %+v", l.Method, l.Error)
			}
			continue
		}
		for _, form := range []string{planted, hex.EncodeToString([]byte(planted)), base64.StdEncoding.EncodeToString([]byte(planted))} {
			if strings.Contains(each, form) {
				t.Errorf("the secret is in %s", each)
			}
		}
	}
	for _, method := range secretMethods {
		if found[method] != 2 {
			t.Errorf("%s is recorded %d times", method, found[method])
		}
	}
}

// TestSecretTypes looks for arguments with a secret that secretTypes does not list.
func TestSecretTypes(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[win.Machine](), reflect.TypeFor[win.Directory]()} {
		for i := range of.NumMethod() {
			method := of.Method(i)
			for i := range method.Type.NumIn() {
				parameter := method.Type.In(i)
				if has := hasSecret(parameter); has != slices.Contains(secretTypes, parameter) {
					t.Errorf("%s: has %s a secret? %t, but secretTypes says otherwise", method.Name, parameter, has)
				}
			}
			for i := range method.Type.NumOut() {
				result := method.Type.Out(i)
				if hasSecret(result) {
					t.Errorf("%s returns a secret", method.Name)
				}
			}
		}
	}
}

func hasSecret(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		if t == reflect.TypeFor[win.Secret]() {
			return true
		}
		for i := range t.NumField() {
			field := t.Field(i)
			if field.IsExported() && hasSecret(field.Type) {
				return true
			}
		}
	case reflect.Slice, reflect.Array, reflect.Pointer:
		return hasSecret(t.Elem())
	default:
	}
	return false
}

// TestRecorder_Full: at its size a recording ends with a line that says so, the log says it once, and calls go on.
// It does not begin again, unless the limit is raised.
func TestRecorder_Full(t *testing.T) {
	const most = 20 << 10
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	ctx, log := klogtest.Context(t)
	m, _ := recorded(ctx, t, path, most)
	for range 500 {
		if ids, err := m.VolumeIDs(t.Context()); err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
	}
	text, lines := read(t, path)
	if len(text) > most || len(text) < most-1000 || lines[len(lines)-1].End == "" {
		t.Errorf("%d bytes, and the last line is %+v", len(text), lines[len(lines)-1])
	}
	if strings.Count(log.String(), "is full") != 1 || !strings.Contains(log.String(), fmt.Sprintf("%q", path)) {
		t.Errorf("the log has %q", log)
	}
	const want = "it is full: it has %d bytes, and may have %d; delete it, move it away, or raise the limit"
	if _, err := Open(ctx, Config{Path: path, MaxBytes: most}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf(path+": "+want, len(text), most)) {
		t.Error(err)
	}
	if again, _ := read(t, path); again != text {
		t.Error("a full recording is changed")
	}
	m, _ = recorded(ctx, t, path, 2*most)
	_, _ = m.VolumeIDs(t.Context())
	if _, more := read(t, path); len(more) != len(lines)+2 {
		t.Errorf("there are %d lines after %d", len(more), len(lines))
	}
}

// TestOpen_Again: a start continues the recording of an earlier run with a header of its own, after a line that a
// kill has cut.
func TestOpen_Again(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	const calls = 3
	for range calls {
		m, r := recorded(t.Context(), t, path, 0)
		_, _ = m.VolumeIDs(t.Context())
		require.NoError(t, r.Close())
		if _, err := m.VolumeIDs(t.Context()); err != nil { // without a line
			t.Error(err)
		}
	}
	text, lines := read(t, path)
	for i, l := range lines {
		if header := i%2 == 0; header != (l.Recording != "") || header == (l.Method != "") || len(lines) != 2*calls {
			t.Errorf("line %d of %d is %+v", i, len(lines), l)
		}
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.TrimSuffix(text, "}\n")), 0o600))
	recorded(t.Context(), t, path, 0)
	cut, err := os.ReadFile(path)
	require.NoError(t, err)
	if rest, found := strings.CutPrefix(string(cut), strings.TrimSuffix(text, "}\n")+"\n"); !found || len(parse(t, rest)) != 1 {
		t.Errorf("after a cut line the file ends with %q", rest)
	}
}

// TestOpen_Refused: a file that is not a recording stays as it is.
func TestOpen_Refused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	for _, other := range []string{"precious", `{"recording":"of music"}` + "\n", marker[:10] + "x", strings.Repeat("\x00", 100)} {
		require.NoError(t, os.WriteFile(path, []byte(other), 0o600))
		_, err := Open(t.Context(), Config{Path: path})
		const want = ": it has other content, which is kept; choose another file, or move this one away"
		if err == nil || !strings.Contains(err.Error(), path+want) {
			t.Errorf("%q: got %v, want %s", other, err, want)
		}
		if left, _ := os.ReadFile(path); string(left) != other {
			t.Errorf("%q becomes %q", other, left)
		}
	}
	if _, err := Open(t.Context(), Config{Path: t.TempDir()}); err == nil {
		t.Error("a directory was opened as a file")
	}
	if _, err := Open(t.Context(), Config{Path: filepath.Join(path, "calls.jsonl")}); err == nil || !strings.Contains(err.Error(), "the recording") {
		t.Error(err)
	}
}

// TestOpen_Nothing: an empty file, and one that a full disk has cut off in its header, are a recording.
func TestOpen_Nothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	for _, text := range []string{"", marker[:1], marker[:20]} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		m, r := recorded(t.Context(), t, path, 0)
		_, _ = m.VolumeIDs(t.Context())
		if _, lines := read(t, path); len(lines) != 2 || lines[0].Recording == "" {
			t.Errorf("%q becomes %+v", text, lines)
		}
		_ = r.Close()
	}
}

// short is a file on a disk with limited space.
type short struct {
	bytes.Buffer
	room int
}

func (s *short) Write(b []byte) (int, error) {
	n, _ := s.Buffer.Write(b[:min(len(b), s.room)])
	s.room -= n
	if n < len(b) {
		return n, errors.New("disk full")
	}
	return n, nil
}

func (*short) Close() error { return nil }

// TestRecorder_Short: a disk that is full within a line costs the lines that did not fit, and no call. A later line
// says how many, and the log says it once.
func TestRecorder_Short(t *testing.T) {
	const plenty = 1 << 20
	length := plenty
	for space := 0; space < length; space++ {
		ctx, log := klogtest.Context(t)
		file := &short{room: plenty}
		r := &Recorder{log: klog.FromContext(ctx), limit: plenty, file: file}
		m := win.Intercept(planter(false), r.Intercept)
		call := func() {
			if ids, err := m.VolumeIDs(t.Context()); err != nil || len(ids) != 1 {
				t.Fatal(ids, err)
			}
		}
		call()
		length = file.Len() // at least; times have up to nine digits
		file.room = space
		call()
		file.room = 0
		call()
		cut := file.String()
		file.room = plenty
		call()
		rest, found := strings.CutPrefix(file.String(), strings.TrimSuffix(cut, "\n")+"\n")
		switch lines := parse(t, rest); {
		case !found || len(lines) != 1 || lines[0].Lost == 0 || lines[0].Lost > 2:
			t.Fatalf("with %d bytes of space the file ends with %q", space, rest)
		case strings.Count(log.String(), "Cannot record calls") != 1:
			t.Fatalf("the log has %q", log)
		}
	}
}

// TestRecorder_Concurrent: calls at the same time have whole lines, up to the last one.
func TestRecorder_Concurrent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.jsonl")
	const callers, calls, most = 4, 200, 100 << 10
	m, r := recorded(t.Context(), t, path, most)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				_, _ = m.FileInfo(t.Context(), win.Following(`C:\`+strings.Repeat("x", 100)))
			}
		})
	}
	all.Wait()
	require.NoError(t, r.Close())
	text, lines := read(t, path)
	if len(text) > most || len(lines) > callers*calls || lines[len(lines)-1].End == "" {
		t.Errorf("%d bytes, %d lines, the last is %+v", len(text), len(lines), lines[len(lines)-1])
	}
}
