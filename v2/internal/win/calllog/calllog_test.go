package calllog

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/klogtest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const planted = "xyzzy-plugh-42" // every secret, and what is on disks

// planter is a machine that makes up results. With fails, each call fails and repeats its arguments, secrets included.
func planter(fails bool) win.Machine {
	return win.Intercept(struct{ win.Machine }{}, func(_ context.Context, c *win.Call, _ func(context.Context) error) error {
		if fails && c.Method != "OpenDirectory" && !strings.HasSuffix(c.Entry(), `\list`) || fails && c.Method == "Next" {
			return fmt.Errorf("%s: %w", planted, winerr.AccessDenied)
		}
		if c.Result != nil {
			fill(reflect.ValueOf(c.Result).Elem())
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
	listed, err := dir.ListDirectory(t.Context(), "list")
	require.NoError(t, err)
	methods = append(methods, "ListDirectory")
	for _, object := range []reflect.Value{reflect.ValueOf(&m).Elem(), reflect.ValueOf(&dir).Elem(), reflect.ValueOf(&listed).Elem()} {
		for i := range object.NumMethod() {
			method := object.Type().Method(i)
			if slices.Contains([]string{"Now", "Elapsed", "Sleep", "StuckChange", "Announce", "Process", "Close", "OpenDirectory"}, method.Name) {
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

// TestMachine_EveryMethod: each method of the seam, found by reflection, is one line.
func TestMachine_EveryMethod(t *testing.T) {
	log := klogtest.Verbose(t, 6)
	methods := callAll(t, Machine(planter(false)))
	text := log.String()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != len(methods) || len(methods) < reflect.TypeFor[win.Machine]().NumMethod() {
		t.Fatalf("%d lines of %d calls:\n%s", len(lines), len(methods), text)
	}
	for i, line := range lines {
		if !strings.Contains(line, `"Windows call" took="`) || !strings.Contains(line, `" method="`+methods[i]+`"`) || strings.Contains(line, "err=") {
			t.Errorf("%s, want %s", line, methods[i])
		}
	}
	for _, want := range []string{
		`method="OpenDirectory" path="C:\\base\\rest"`,
		`method="Remove" entry="C:\\base\\rest\\a\\b"`,
		`method="CreateDirectoryLink" entry="C:\\base\\rest\\a\\b" target="a\\b"`,
		`method="ListDirectory" entry="C:\\base\\rest\\list"`,
		`method="Next" entry="C:\\base\\rest\\list" result=1`,
		`length=0 result="14 bytes"`, // ReadDevice
		`method="FirmwareTable" result="14 bytes"`,
		`method="BIOSSerialNumber" result="a\\b"`,
		`method="CreateSMBMapping" request={"Remote":"a\\b","User":"a\\b","Password":"***"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, planted) {
		t.Errorf("a secret or data is in\n%s", text)
	}
}

// TestMachine_Failures: a failure is logged with its code, and with its text unless that could repeat a secret.
func TestMachine_Failures(t *testing.T) {
	log := klogtest.Verbose(t, 6)
	callAll(t, Machine(planter(true)))
	without := 0
	for line := range strings.Lines(log.String()) {
		withSecret := strings.Contains(line, "***")
		switch {
		case strings.Contains(line, `method="OpenDirectory"`), strings.Contains(line, `method="ListDirectory" entry="C:\\base\\rest\\list"`+"\n"):
		case !strings.Contains(line, " code=5") || withSecret == strings.Contains(line, " err="):
			t.Error(line)
		case withSecret:
			without++
		}
		if withSecret && strings.Contains(line, planted) {
			t.Errorf("the secret is in %s", line)
		}
	}
	if want := 3; without != want { // Login, CreateSMBMapping, SetInitiatorCHAPSharedSecret
		t.Errorf("%d failures have a secret, want %d", without, want)
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

// silent is a machine whose calls allocate nothing.
type silent struct{ win.Machine }

func (*silent) FileInfo(context.Context, win.Path) (win.FileInfo, error) { return win.FileInfo{}, nil }

// TestMachine_Cost: below -v=6, a call costs what it costs without a log.
func TestMachine_Cost(t *testing.T) {
	log := klogtest.Verbose(t, 5)
	itself := &silent{}
	m := Machine(itself)
	if m != win.Machine(itself) {
		t.Error("calls are intercepted")
	}
	path := win.Following(`C:\a`)
	if n := testing.AllocsPerRun(100, func() { _, _ = m.FileInfo(t.Context(), path) }); n != 0 {
		t.Errorf("%v allocations per call", n)
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", log)
	}
}
