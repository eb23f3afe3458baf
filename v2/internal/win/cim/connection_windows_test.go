package cim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/windows"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

var (
	someVolume = Object{Namespace: Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: `\\?\Volume{1}\`}
	someClass  = Object{Namespace: Storage, Class: "MSFT_StorageSetting"}
)

// on runs calls on a thread of a pool whose WMI is w, and then checks that every object was
// released.
func on(t *testing.T, w *fakeWMI, f func(p *pool)) {
	t.Helper()
	var open sync.WaitGroup
	p := newPool(func() (connection, error) {
		c, err := newClient(w.locate)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return closeNotifier{c, &open}, nil
	}, testRunning)
	f(p)
	p.close()
	open.Wait()
	if held := heldFakes(); len(held) != 0 {
		t.Errorf("still held: %s", strings.Join(held, ", "))
	}
}

type closeNotifier struct {
	connection
	open *sync.WaitGroup
}

func (c closeNotifier) close() {
	c.connection.close()
	c.open.Done()
}

func callOn(ctx context.Context, p *pool, object Object, method string, in map[string]any) (result uint32, err error) {
	err = p.do(ctx, func(c connection) (err error) {
		result, err = c.call(object, method, in)
		return err
	})
	return result, err
}

func queryOn(ctx context.Context, p *pool, object Object, properties ...string) (instances []map[string]any, err error) {
	err = p.do(ctx, func(c connection) (err error) {
		instances, err = c.query(object, properties)
		return err
	})
	return instances, err
}

func TestCall_Instance(t *testing.T) {
	w := &fakeWMI{result: 43006}
	on(t, w, func(p *pool) {
		for range 2 {
			result, err := callOn(t.Context(), p, someVolume, "Format", map[string]any{"FileSystem": "NTFS", "Full": false, "Force": true, "ClusterSize": int32(4096)})
			if err != nil || result != 43006 {
				t.Errorf("%d, %v, want 43006", result, err)
			}
		}
	})
	connecting := []string{"ConnectServer . " + Storage, "Security_", "ImpersonationLevel 3", "AuthenticationLevel 6"}
	calling := []string{
		"Get MSFT_Volume",
		`ExecQuery SELECT * FROM MSFT_Volume WHERE UniqueId = '\\\\?\\Volume{1}\\'`, "Count", "ItemIndex 0",
		"Methods_.Item Format", "ClusterSize = 4096", "FileSystem = NTFS", "Force = true", "Full = false",
		"instance.ExecMethod_ Format parameters",
	}
	if diff := cmp.Diff(slices.Concat(connecting, calling, calling), w.log); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestCall_Class(t *testing.T) {
	w := &fakeWMI{}
	on(t, w, func(p *pool) {
		if result, err := callOn(t.Context(), p, someClass, "UpdateHostStorageCache", nil); err != nil || result != 0 {
			t.Errorf("%d, %v", result, err)
		}
	})
	if got := w.log[len(w.log)-1]; got != "class.ExecMethod_ UpdateHostStorageCache" {
		t.Errorf("last call %q", got)
	}
}

func TestCall_NotFound(t *testing.T) {
	on(t, &fakeWMI{}, func(p *pool) {
		_, err := callOn(t.Context(), p, Object{Namespace: Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: "unknown"}, "Format", nil)
		if !errors.Is(err, winerr.WMINotFound) || !errors.Is(err, winerr.NotFound) {
			t.Errorf("%v, want %v", err, winerr.WMINotFound)
		}
	})
}

// TestCall_NoMethod: WMI calls a method or parameter that it does not have "not found". A caller must not
// think that the object is gone.
func TestCall_NoMethod(t *testing.T) {
	for call, want := range map[string]error{"Methods_.Item": winerr.Unsupported, "Properties_.Item": winerr.InvalidParameter} {
		t.Run(call, func(t *testing.T) {
			w := &fakeWMI{fail: map[string][]error{call: {exception(0x80041002)}}}
			on(t, w, func(p *pool) {
				_, err := callOn(t.Context(), p, someVolume, "Format", map[string]any{"Force": true})
				if !errors.Is(err, want) || errors.Is(err, winerr.NotFound) {
					t.Errorf("%v, want %v", err, want)
				}
			})
		})
	}
}

// TestCall_Optional: a parameter that the method does not declare is left out if it may be.
func TestCall_Optional(t *testing.T) {
	for declared, fail := range map[string][]error{"Persistent = false": nil, "": {exception(0x80041002)}} {
		w := &fakeWMI{fail: map[string][]error{"Properties_.Item": fail}}
		on(t, w, func(p *pool) {
			if _, err := callOn(t.Context(), p, someClass, "Create", map[string]any{"Persistent": Optional(false), "RemotePath": "x"}); err != nil {
				t.Error(err)
			}
		})
		if got := strings.Contains(strings.Join(w.log, "\n"), "Persistent"); got != (declared != "") || !slices.Contains(w.log, "RemotePath = x") {
			t.Errorf("the calls are %q, want %q among them", w.log, declared)
		}
	}
}

// TestCall_NoClass: WMI calls it "not found", as it does an instance.
func TestCall_NoClass(t *testing.T) {
	w := &fakeWMI{fail: map[string][]error{"Get": {exception(0x80041002)}}}
	on(t, w, func(p *pool) {
		_, err := callOn(t.Context(), p, someVolume, "Format", nil)
		if !errors.Is(err, winerr.Unsupported) || errors.Is(err, winerr.NotFound) {
			t.Errorf("%v, want that it is not supported", err)
		}
	})
}

func TestCall_Exception(t *testing.T) {
	w := &fakeWMI{fail: map[string][]error{"instance.ExecMethod_": {exception(0x80070005)}}}
	on(t, w, func(p *pool) {
		_, err := callOn(t.Context(), p, someVolume, "Format", nil)
		if winerr.CodeOf(err) != winerr.AccessDenied || !strings.Contains(err.Error(), "as described") {
			t.Errorf("%v, want 5 with its text", err)
		}
	})
}

func TestCall_UnknownMember(t *testing.T) {
	on(t, &fakeWMI{}, func(p *pool) {
		err := p.do(t.Context(), func(c connection) error {
			_, err := new(scope).get(c.(closeNotifier).connection.(*client).locator, "Nonsense")
			return err
		})
		if winerr.CodeOf(err) != unknownName {
			t.Errorf("%v, want DISP_E_UNKNOWNNAME", err)
		}
	})
}

// TestCall_Reconnects: as long as the method was not sent, a lost connection is made
// again, once.
func TestCall_Reconnects(t *testing.T) {
	const serverUnavailable, transport = exception(0x800706BA), exception(0x80041015)
	for _, c := range []struct {
		name     string
		fail     map[string][]error
		want     error
		connects int
	}{
		{"class", map[string][]error{"Get": {serverUnavailable}}, nil, 2},
		{"query", map[string][]error{"Count": {transport}}, nil, 2},
		{"connection", map[string][]error{"ConnectServer": {serverUnavailable}}, nil, 2},
		{"for ever", map[string][]error{"Get": {serverUnavailable, serverUnavailable, serverUnavailable}}, winerr.Unavailable, 2},
		{"another failure", map[string][]error{"Get": {exception(0x80041010)}}, winerr.Unsupported, 1},
		{"in the method", map[string][]error{"instance.ExecMethod_": {serverUnavailable}}, winerr.Unavailable, 1},
	} {
		w := &fakeWMI{fail: c.fail}
		on(t, w, func(p *pool) {
			if _, err := callOn(t.Context(), p, someVolume, "Format", nil); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
			if n := count(w.log, "ConnectServer"); n != c.connects {
				t.Errorf("%s: connected %d times, want %d", c.name, n, c.connects)
			}
			if n := count(w.log, "instance.ExecMethod_"); n > 1 {
				t.Errorf("%s: the method was sent %d times", c.name, n)
			}
			// The next call gets a new connection where this one was lost.
			w.fail = nil
			if _, err := callOn(t.Context(), p, someVolume, "Format", nil); err != nil {
				t.Errorf("%s: the next call: %v", c.name, err)
			}
		})
	}
}

func count(log []string, prefix string) (n int) {
	for _, line := range log {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// TestCall_Hangs: a call that hangs does not stop the next one, and is waited for although its
// context ends.
func TestCall_Hangs(t *testing.T) {
	w := &fakeWMI{result: 5}
	on(t, w, func(p *pool) {
		ctx, cancel := context.WithCancel(t.Context())
		w.hang = func() {
			cancel()
			if _, err := queryOn(t.Context(), p, someVolume, "Size"); err != nil {
				t.Errorf("another call: %v", err)
			}
		}
		if result, err := callOn(ctx, p, someVolume, "Format", nil); err != nil || result != 5 {
			t.Errorf("%d, %v, want 5", result, err)
		}
	})
	if n := count(w.log, "ConnectServer"); n != 2 {
		t.Errorf("%d connections, want one for each thread", n)
	}
}

func TestQuery_Fake(t *testing.T) {
	on(t, &fakeWMI{}, func(p *pool) {
		got, err := queryOn(t.Context(), p, someVolume, "ReturnValue", "Size", "FileSystemLabel")
		want := []map[string]any{{"ReturnValue": int64(0), "Size": "18446744073709551615", "FileSystemLabel": nil}}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// From here on it is the machine's own WMI.

func TestQuery_Machine(t *testing.T) {
	got, err := Query(t.Context(), Object{Namespace: V2, Class: "Win32_OperatingSystem"}, "Caption", "Version", "ProductType")
	require.NoError(t, err)
	if len(got) != 1 {
		t.Fatalf("%d operating systems: %v", len(got), got)
	}
	version, _ := got[0]["Version"].(string)
	if _, isNumber := got[0]["ProductType"].(int64); !strings.Contains(version, ".") || !isNumber {
		t.Errorf("operating system %v", got[0])
	}
	t.Logf("%v", got[0])
}

func TestQuery_Where(t *testing.T) {
	got, err := Query(t.Context(), Object{Namespace: V2, Class: "Win32_LogicalDisk", Property: "DeviceID", Value: "C:"}, "DeviceID", "Size")
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v, want one drive", got, err)
	}
	if _, isText := got[0]["Size"].(string); got[0]["DeviceID"] != "C:" || !isText {
		t.Errorf("drive %v", got[0])
	}
	got, err = Query(t.Context(), Object{Namespace: V2, Class: "Win32_LogicalDisk", Property: "DeviceID", Value: `x' OR DeviceID='C:`}, "DeviceID")
	if onWine() && winerr.CodeOf(err) == 0x80041017 { // WBEM_E_INVALID_QUERY
		t.Skip("Wine does not know that quotes can be escaped")
	}
	if err != nil || len(got) != 0 {
		t.Errorf("%v, %v, want none", got, err)
	}
}

func TestQuery_NoSuchThing(t *testing.T) {
	for name, object := range map[string]Object{
		"namespace": {Namespace: `root\nonsense`, Class: "Win32_OperatingSystem"},
		"class":     {Namespace: V2, Class: "Win32_Nonsense"},
	} {
		got, err := Query(t.Context(), object, "Name")
		t.Logf("%s: %v", name, err)
		if name == "class" && onWine() && err == nil && len(got) == 0 {
			continue // there a class that does not exist merely has no instances
		}
		if !errors.Is(err, winerr.Unsupported) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, winerr.Unsupported)
		}
	}
}

func TestCall_Machine(t *testing.T) {
	// A static method that changes nothing.
	result, err := Call(t.Context(), Object{Namespace: `root\default`, Class: "StdRegProv"}, "EnumKey",
		map[string]any{"hDefKey": uint32(0x80000002), "sSubKeyName": "SOFTWARE"})
	if err != nil && onWine() {
		t.Skipf("Wine runs no methods from scripts: %v", err)
	}
	if err != nil || result != 0 {
		t.Errorf("%d, %v", result, err)
	}
}

func TestCall_NoInstance(t *testing.T) {
	_, err := Call(t.Context(), Object{Namespace: V2, Class: "Win32_Volume", Property: "DeviceID", Value: `\\?\Volume{00000000-0000-0000-0000-000000000000}\`},
		"Format", map[string]any{"FileSystem": "NTFS", "QuickFormat": true})
	if !errors.Is(err, winerr.WMINotFound) {
		t.Errorf("%v, want %v", err, winerr.WMINotFound)
	}
}

// onWine reports whether this is not Windows.
func onWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}
