package wmi

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// client speaks to a server as the COM server does.
type client struct {
	t      *testing.T
	server *Server
}

// number is an object, as it travels.
type number uint64

// invoke calls a member; an error comes as the two codes of an exception.
func (c client) invoke(flags uint16, object number, member string, args ...any) (result any, hresult, scode uint32) {
	c.t.Helper()
	var w writer
	w.uint16(opInvoke)
	w.uint64(uint64(object))
	w.uint16(flags)
	w.text(member)
	w.uint16(uint16(len(args)))
	for _, arg := range args {
		if object, ok := arg.(number); ok {
			w.uint16(vtDispatch)
			w.uint64(uint64(object))
			continue
		}
		w.value(c.server, arg)
	}
	answer, err := c.server.Answer(c.t.Context(), w.b)
	if err != nil {
		c.t.Fatal(err)
	}
	r := reader{b: answer}
	hresult, scode = r.uint32(), r.uint32()
	r.text()
	if len(r.b) >= 2 && r.b[0] == vtDispatch {
		r.uint16()
		return number(r.uint64()), hresult, scode
	}
	return r.value(c.server), hresult, scode
}

// get reads a property or calls a method that must succeed.
func (c client) get(object any, member string, args ...any) any {
	c.t.Helper()
	o, ok := object.(number)
	if !ok {
		c.t.Fatalf("%s of %v, which is not an object", member, object)
	}
	result, hresult, scode := c.invoke(1, o, member, args...)
	if hresult != 0 {
		c.t.Fatalf("%s: %#x, %#x", member, hresult, scode)
	}
	return result
}

const greeting = `root\greeting`

// newClient has a namespace with one class, whose instances greet.
func newClient(t *testing.T) client {
	t.Helper()
	return client{t, NewServer(Namespaces{greeting: {"Person": {
		Instances: func(context.Context) ([]Values, error) {
			return []Values{{"Name": `O'Neil\x`, "Age": int32(40)}, {"Name": "Ada"}}, nil
		},
		Methods: map[string]Method{
			"Greet": {In: []string{"Greeting", "Loud"}, Call: func(_ context.Context, self, in Values) (Values, error) {
				if in["Loud"] == true {
					return nil, winerr.AccessDenied
				}
				return Values{"ReturnValue": int32(7), "Text": in["Greeting"].(string) + " " + self["Name"].(string)}, nil
			}},
			"Count": {Call: func(_ context.Context, self, _ Values) (Values, error) {
				return Values{"ReturnValue": int32(2), "Static": self == nil}, nil
			}},
		},
	}}}, io.Discard)}
}

func (c client) property(object any, name string) any {
	c.t.Helper()
	return c.get(c.get(c.get(object, "Properties_"), "Item", name), "Value")
}

// greet builds parameters as scripts do, and calls the method.
func (c client) greet(services, person any, loud bool) (out any, hresult, scode uint32) {
	c.t.Helper()
	definition := c.get(c.get(c.get(c.get(services, "Get", "person"), "Methods_"), "Item", "greet"), "InParameters")
	parameters := c.get(definition, "SpawnInstance_")
	for name, value := range map[string]any{"Greeting": "Hello", "Loud": loud} {
		item := c.get(c.get(parameters, "Properties_"), "Item", name)
		if _, hresult, _ := c.invoke(4, item.(number), "Value", value); hresult != 0 {
			c.t.Fatalf("put %s: %#x", name, hresult)
		}
	}
	if got := c.property(definition, "Greeting"); got != nil {
		c.t.Errorf("the definition has the value %v", got)
	}
	return c.invoke(1, person.(number), "ExecMethod_", "Greet", parameters)
}

func TestServer(t *testing.T) {
	c := newClient(t)
	services := c.get(number(locatorNumber), "ConnectServer", ".", `ROOT\Greeting`)
	found := c.get(services, "ExecQuery", `SELECT * FROM Person WHERE Name = 'o\'neil\\X'`)
	if count := c.get(found, "Count"); count != int32(1) {
		t.Fatalf("%v persons, want 1", count)
	}
	person := c.get(found, "ItemIndex", int32(0))
	if age := c.property(person, "Age"); age != int32(40) {
		t.Errorf("age %v, want 40", age)
	}
	out, hresult, _ := c.greet(services, person, false)
	if hresult != 0 {
		t.Fatalf("greet: %#x", hresult)
	}
	if text := c.property(out, "Text"); text != `Hello O'Neil\x` {
		t.Errorf("greeted with %q", text)
	}
	if _, hresult, scode := c.greet(services, person, true); hresult != uint32(errException) || scode != 0x80070005 {
		t.Errorf("greet aloud: %#x, %#x, want access denied", hresult, scode)
	}
	counted := c.get(c.get(services, "Get", "Person"), "ExecMethod_", "Count")
	if c.property(counted, "Static") != true || c.property(counted, "ReturnValue") != int32(2) {
		t.Error("a static method got an instance")
	}
}

func TestServer_Errors(t *testing.T) {
	c := newClient(t)
	locator := number(locatorNumber)
	services := c.get(locator, "ConnectServer", ".", greeting).(number)
	class := c.get(services, "Get", "Person").(number)
	exception := uint32(errException)
	for _, test := range []struct {
		name           string
		object         number
		member         string
		args           []any
		hresult, scode uint32
	}{
		{"namespace", locator, "ConnectServer", []any{".", `root\x`}, exception, uint32(errInvalidNamespace)},
		{"class", services, "Get", []any{"Animal"}, exception, uint32(winerr.WMINotFound)},
		{"class in a query", services, "ExecQuery", []any{"SELECT * FROM Animal"}, exception, uint32(errInvalidClass)},
		{"query", services, "ExecQuery", []any{"DELETE"}, exception, uint32(errInvalidQuery)},
		{"method", class, "ExecMethod_", []any{"Fly"}, exception, uint32(errInvalidMethod)},
		{"parameters of the wrong type", class, "ExecMethod_", []any{"Greet", "Hello"}, uint32(errTypeMismatch), 0},
		{"missing argument", services, "Get", nil, uint32(errBadParamCount), 0},
		{"member", services, "Fly", nil, uint32(errMemberNotFound), 0},
		{"object", 99, "Count", nil, uint32(errObjectGone), 0},
	} {
		if _, hresult, scode := c.invoke(1, test.object, test.member, test.args...); hresult != test.hresult || scode != test.scode {
			t.Errorf("%s: %#x, %#x, want %#x, %#x", test.name, hresult, scode, test.hresult, test.scode)
		}
	}
	if _, hresult, _ := c.invoke(4, services, "Get", "x"); hresult != uint32(errMemberNotFound) {
		t.Errorf("put of a method: %#x", hresult)
	}
	for n := range 12 {
		if _, err := c.server.Answer(t.Context(), []byte("\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00")[:n]); err == nil {
			t.Errorf("a message of %d bytes was read", n)
		}
	}
}

func TestServer_Release(t *testing.T) {
	c := newClient(t)
	services := c.get(number(locatorNumber), "ConnectServer", ".", greeting).(number)
	var w writer
	w.uint16(opRelease)
	w.uint64(uint64(services))
	if _, err := c.server.Answer(t.Context(), w.b); err != nil || len(c.server.objects) != 0 {
		t.Errorf("%v, %d objects are left", err, len(c.server.objects))
	}
}

// TestStorage formats volumes of an emulated node, by both classes.
func TestStorage(t *testing.T) {
	model := winsim.Default()
	model.Disks[1].Layout = winsim.LayoutGPT
	model.Disks[1].Partitions = []winsim.Partition{{}}
	node, err := winsim.New(model)
	require.NoError(t, err)
	info, err := node.DiskInfo(1)
	require.NoError(t, err)
	data := info.Partitions[0].Volume.ID
	storage := Storage(node)[`root\Microsoft\Windows\Storage`]
	legacy := Storage(node)[`root\cimv2`]["Win32_Volume"]
	formatted := Values{"FileSystem": "NTFS", "Full": false, "Force": true}
	formattedQuickly := Values{"FileSystem": "NTFS", "QuickFormat": true}
	for _, test := range []struct {
		name     string
		method   Method
		self, in Values
		want     int32
	}{
		{"by the storage service", storage["MSFT_Volume"].Methods["Format"], Values{"UniqueId": data}, formatted, 0},
		{"of Windows", storage["MSFT_Volume"].Methods["Format"], Values{"UniqueId": winsim.SystemVolume}, formatted, int32(winerr.StorageSystemPartition)},
		{"sector by sector", storage["MSFT_Volume"].Methods["Format"], Values{"UniqueId": data}, Values{"FileSystem": "NTFS", "Force": true}, int32(winerr.StorageInvalidParameter)},
		{"by Win32_Volume", legacy.Methods["Format"], Values{"DeviceID": data}, formattedQuickly, 0},
		{"of Windows by Win32_Volume", legacy.Methods["Format"], Values{"DeviceID": winsim.SystemVolume}, formattedQuickly, int32(winerr.LegacyFormatAccessDenied)},
		{"with options", storage["MSFT_Volume"].Methods["Format"], Values{"UniqueId": data}, Values{"FileSystem": "NTFS", "Full": false, "Force": true, "AllocationUnitSize": int32(65536), "FileSystemLabel": "x"}, 0},
		{"with wrong clusters", storage["MSFT_Volume"].Methods["Format"], Values{"UniqueId": data}, Values{"FileSystem": "NTFS", "Full": false, "Force": true, "AllocationUnitSize": int32(3)}, int32(winerr.StorageClusterSize)},
		{"with a long label by Win32_Volume", legacy.Methods["Format"], Values{"DeviceID": data}, Values{"FileSystem": "NTFS", "QuickFormat": true, "ClusterSize": int32(4096), "Label": "123456789 123456789 123456789 123"}, int32(winerr.LegacyFormatLabel)},
		{"of the cache", storage["MSFT_StorageSetting"].Methods["UpdateHostStorageCache"], nil, nil, 0},
	} {
		out, err := test.method.Call(t.Context(), test.self, test.in)
		if want := (Values{"ReturnValue": test.want}); err != nil || !cmp.Equal(out, want) {
			t.Errorf("%s: %v, %v, want %v", test.name, out, err, want)
		}
	}
	if info, err := node.DiskInfo(1); err != nil || info.Partitions[0].Volume.Label != "x" || info.Partitions[0].Volume.ClusterSize != 64*winsim.KiB {
		t.Errorf("the options did not arrive: %+v, %v", info, err)
	}
	if volumes, err := legacy.Instances(t.Context()); err != nil || !slices.ContainsFunc(volumes, func(v Values) bool { return v["DeviceID"] == data }) {
		t.Errorf("%s is not among %v, %v", data, volumes, err)
	}
}

// TestSplitCredential takes apart what internal/win/local puts together.
func TestSplitCredential(t *testing.T) {
	for credential, want := range map[string][2]string{
		`me:secret`:         {"me", "secret"},
		`DOMAIN\\me:p:ss\w`: {`DOMAIN\me`, `p:ss\w`},
		`a\:b::`:            {"a:b", ":"},
		`a\\\:b:`:           {`a\:b`, ""},
	} {
		if user, password := splitCredential(credential); user != want[0] || password != want[1] {
			t.Errorf("%s: %q and %q, want %q", credential, user, password, want)
		}
	}
}
