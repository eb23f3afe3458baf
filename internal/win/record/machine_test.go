package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const planted = "xyzzy-plugh-42" // every secret

// planter is a machine below a recorder. Its results are made up by fill; or each call fails with an
// error that repeats its arguments, secrets included.
type planter struct {
	fails bool
	ticks atomic.Int64
}

func (p *planter) Now() time.Time                           { return time.UnixMilli(p.ticks.Add(1)) }
func (*planter) Sleep(context.Context, time.Duration) error { return nil }
func (*planter) handle() int                                { return 1 }

func (p *planter) do(_ int, method string, arguments in, result any, _ func() error) error {
	if p.fails && method != "OpenDirectory" {
		return fmt.Errorf("%s: %w, %s", arguments, winerr.AccessDenied, planted)
	}
	if result != nil && method != "OpenDirectory" && method != "Open" {
		fill(reflect.ValueOf(result).Elem(), method)
	}
	return nil
}

// fill sets every text in a value to "zq " and where it stands, and secrets to the planted one.
func fill(v reflect.Value, at string) {
	switch {
	case v.Type() == reflect.TypeFor[win.Secret]():
		v.Set(reflect.ValueOf(win.NewSecret(planted)))
		return
	case v.Type() == reflect.TypeFor[win.VolumeID]():
		v.SetString(`\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`)
		return
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("zq " + at)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), typeName(v.Type())+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[buffer]() {
			copy(v.Bytes(), "zq "+at)
			return
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("zq " + at))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), at)
	case reflect.Array: // a GUID
		v.Index(0).SetUint(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(7)
	case reflect.Int, reflect.Int64:
		v.SetInt(1024)
	default:
		panic(at + " has a type that fill does not know")
	}
}

// callAll calls every method of a machine and of a directory, and returns the results by name.
func callAll(t *testing.T, m win.Machine) map[string][]any {
	t.Helper()
	results := map[string][]any{}
	dir, err := m.OpenDirectory(t.Context(), win.Path{Base: `C:\`, Rest: "zq Path.Rest"})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range []struct {
		name string
		v    reflect.Value
	}{{"machine", reflect.ValueOf(&m).Elem()}, {"directory", reflect.ValueOf(&dir).Elem()}} {
		for i := range object.v.NumMethod() {
			method := object.v.Type().Method(i)
			if slices.Contains([]string{"Now", "Sleep", "OpenDirectory", "Open", "Close"}, method.Name) {
				continue
			}
			arguments := []reflect.Value{reflect.ValueOf(t.Context())}
			for p := 1; p < method.Type.NumIn(); p++ {
				if method.Type.In(p).Kind() == reflect.Func {
					each := func(_ win.Tree, entries []win.DirEntry) error {
						results["each"] = append(results["each"], entries)
						return nil
					}
					arguments = append(arguments, reflect.ValueOf(each))
					continue
				}
				argument := reflect.New(method.Type.In(p)).Elem()
				if argument.Type() == reflect.TypeFor[[]byte]() {
					argument.SetBytes(make([]byte, 1024))
					results[method.Name+" buffer"] = append(results[method.Name+" buffer"], argument.Bytes())
				} else {
					fill(argument, fmt.Sprintf("%s argument %d", method.Name, p))
				}
				arguments = append(arguments, argument)
			}
			for _, result := range object.v.Method(i).Call(arguments) {
				key := object.name + "." + method.Name
				results[key] = append(results[key], result.Interface())
			}
		}
	}
	return results
}

func TestMachine_EveryMethod(t *testing.T) {
	var out bytes.Buffer
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{Program: "test"})
	want := callAll(t, r.Machine())
	recording, err := Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if methods := reflect.TypeFor[win.Machine]().NumMethod() + reflect.TypeFor[win.Directory]().NumMethod() - 4; len(recording.Calls) != methods {
		t.Errorf("%d calls are recorded, want %d", len(recording.Calls), methods)
	}
	got := callAll(t, recording.Player(func(err error) { t.Error(err) }))
	for name, results := range want {
		for i, result := range results {
			if fmt.Sprintf("%+v", result) != fmt.Sprintf("%+v", got[name][i]) {
				t.Errorf("%s answers %+v, was recorded with %+v", name, got[name][i], result)
			}
		}
	}
}

// TestPlayer_EveryMethod: without its answer, the call of each method in turn is the first that fails, and the
// one that is named.
func TestPlayer_EveryMethod(t *testing.T) {
	var out bytes.Buffer
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{})
	callAll(t, r.Machine())
	recording, err := Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range recording.Calls {
		if c.Method == "OpenDirectory" { // the others need it
			continue
		}
		less := *recording
		less.Calls = slices.Delete(slices.Clone(recording.Calls), i, i+1)
		var unknown []string
		callAll(t, less.Player(func(err error) { unknown = append(unknown, err.Error()) }))
		if len(unknown) != 1 || !strings.HasPrefix(unknown[0], "replay a recording: "+c.Method) || !strings.Contains(unknown[0], ": the recording has no answer to it") {
			t.Errorf("without %s: %q", c.Method, unknown)
		}
	}
}

func TestRecorder_Secrets(t *testing.T) {
	for _, fails := range []bool{false, true} {
		for _, hash := range []bool{false, true} {
			t.Run(fmt.Sprintf("fails=%t,hash=%t", fails, hash), func(t *testing.T) {
				var out bytes.Buffer
				r := New(t.Context(), machine{conductor: &planter{fails: fails}}, &out, Options{Hash: hash})
				callAll(t, r.Machine())
				text := out.String()
				for _, method := range []string{"Login", "CreateSMBMapping", "SetInitiatorCHAPSharedSecret"} {
					if !strings.Contains(text, `"method":"`+method+`"`) {
						t.Errorf("%s is not recorded", method)
					}
				}
				for line := range strings.Lines(text) {
					var l struct{ Call *Call }
					if err := json.Unmarshal([]byte(line), &l); err != nil {
						t.Fatal(err)
					}
					// Only calls with a secret can repeat it. The planter repeats it in all errors.
					if l.Call == nil || !slices.Contains([]string{"Login", "CreateSMBMapping", "SetInitiatorCHAPSharedSecret"}, l.Call.Method) {
						continue
					}
					for _, form := range []string{planted, fmt.Sprintf("%x", planted), base64.StdEncoding.EncodeToString([]byte(planted))} {
						if strings.Contains(line, form) {
							t.Errorf("the recording has a secret: %s", line)
						}
					}
				}
			})
		}
	}
}

// TestSecretTypes looks for arguments with a secret that holdsSecret does not know.
func TestSecretTypes(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[win.Machine](), reflect.TypeFor[win.Directory]()} {
		for method := range of.Methods() {
			for parameter := range method.Type.Ins() {
				if has := hasSecret(parameter); has != secretTypes[parameter] {
					t.Errorf("%s: has %s a secret? %t, but secretTypes says %t", method.Name, parameter, has, secretTypes[parameter])
				}
			}
			for result := range method.Type.Outs() {
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
		for field := range t.Fields() {
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

func TestRecorder_Hash(t *testing.T) {
	var out bytes.Buffer
	r := New(t.Context(), machine{conductor: &planter{}}, &out, Options{Hash: true, Services: []string{"zq Service.Name"}})
	callAll(t, r.Machine())
	r.ControlCode(7, []byte("zq"), []byte("zq"), nil)
	text := out.String()
	if strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("zq "))) || strings.Contains(text, `"raw"`) {
		t.Errorf("the recording has bytes with names: %s", text)
	}
	// Texts have the name of their place, and the public ones are those that stay.
	names := regexpPlace.FindAllStringSubmatch(text, -1)
	if len(names) < 20 {
		t.Errorf("%d public texts are recorded", len(names))
	}
	for _, name := range names {
		if is := contents[name[1]]; is != public && is != aPlace && !slices.Contains(publicArguments, name[1]) {
			t.Errorf("%s is not hashed", name[1])
		}
	}
	if strings.Count(text, `h-`) < 50 {
		t.Error("names are not hashed")
	}
}

func TestHasher(t *testing.T) {
	h := newHasher()
	for in, want := range map[string]string{
		`C:\var\lib\kubelet\pods\UID`:                        `C:\var\lib\kubelet\pods\` + h.sum("UID"),
		`c:\VAR\lib\kubelet\pods\uid`:                        `c:\VAR\lib\kubelet\pods\` + h.sum("UID"),
		`\\server\share`:                                     `\\` + h.sum("SERVER") + `\` + h.sum("SHARE"),
		`\??\UNC\server\share`:                               `\??\UNC\` + h.sum("SERVER") + `\` + h.sum("SHARE"),
		`\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\x`: `\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\` + h.sum("X"),
	} {
		if got := h.path(in); got != want {
			t.Errorf("%s becomes %s, want %s", in, got, want)
		}
	}
	for _, device := range []win.Device{win.PhysicalDrive(3), win.PartitionDevice(1, 2), win.VolumeID(`\\?\Volume{0c51a9e0-0000-0000-0000-100000000000}\`).Device()} {
		if got := h.hashed(device, aName); got != device {
			t.Errorf("%s becomes %s", device, got)
		}
	}
	for in, want := range map[string]string{
		"PCI Slot 3 : Adapter 1 : Port 0 : Target 0 : LUN 2": "PCI Slot 3 : Adapter 1 : Port 0 : Target 0 : LUN 2",
		`D:\Customers\Acme.vhdx`:                             `D:\` + h.sum("CUSTOMERS") + `\` + h.sum("ACME.VHDX"),
	} {
		if got := h.hashed(in, contents["DeviceLocation"]); got != want || contents["Disk.Location"] != contents["DeviceLocation"] {
			t.Errorf("the location %s becomes %s, want %s", in, got, want)
		}
	}
	if newHasher().sum("x") == h.sum("x") {
		t.Error("two recordings have the same hashes")
	}
}

// TestHasher_List: accounts that are the same everywhere stay, and so does what an entry does. The rest is hashed.
func TestHasher_List(t *testing.T) {
	h := newHasher()
	user := h.account("S-1-5-21-1-2-3-1001")
	for in, want := range map[string]string{
		"": "",
		"O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;0x1301bf;;;BU)S:AI(AU;SAFA;FA;;;WD)":                                                    "",
		"D:(A;;FA;;;S-1-5-18)(A;;FA;;;s-1-5-32-544)(A;;FA;;;S-1-5-93-2-2)(A;;FA;;;S-1-1-0)(A;;FA;;;S-1-5-83-0)":                       "",
		"O:S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464G:DUD:NO_ACCESS_CONTROL":                                     "",
		"O:S-1-5-21-1-2-3-1001G:S-1-5-21-1-2-3-1001D:AI(D;;FA;;;S-1-5-21-1-2-3-1001)(OA;;RP;1a-2b;;s-1-5-21-1-2-3-1001)":              "O:" + user + "G:" + user + "D:AI(D;;FA;;;" + user + ")(OA;;RP;1a-2b;;" + user + ")",
		"D:(A;;FA;;;S-1-12-1-1943430372-1249052806-2496021943-3034400218)":                                                            "D:(A;;FA;;;" + h.account("S-1-12-1-1943430372-1249052806-2496021943-3034400218") + ")",
		"D:(A;;FA;;;S-1-5-83-1-19434)(A;;FA;;;S-1-5-82-30067)(A;;FA;;;S-1-5-80-30067)(A;;FA;;;S-1-5-5-0-123)(A;;FA;;;S-1-5-0x15-1-2)": "D:(A;;FA;;;" + h.account("S-1-5-83-1-19434") + ")(A;;FA;;;" + h.account("S-1-5-82-30067") + ")(A;;FA;;;" + h.account("S-1-5-80-30067") + ")(A;;FA;;;" + h.account("S-1-5-5-0-123") + ")(A;;FA;;;" + h.account("S-1-5-0x15-1-2") + ")",
		`D:(XA;;FX;;;WD;(@User.Project=="Acme :-)" && Member_of{SID(BA)}))(A;;FA;;;SY)`:                                               `D:(XA;;FX;;;WD;(` + h.sum(`;(@User.Project=="Acme :-)" && Member_of{SID(BA)})`) + `))(A;;FA;;;SY)`,
		`S:(RA;;;;;WD;("Project",TS,0,"Acme"))`:                                                                                       `S:(RA;;;;;WD;(` + h.sum(`;("Project",TS,0,"Acme")`) + `))`,
		"D:(A;;FA;;;Acme)":                                                                                                            "D:(A;;FA;;;" + h.account("Acme") + ")",
		"D:(A;Acme Inc;FA;;;SY)":                                                                                                      "D:(" + h.sum("(A;Acme Inc;FA;;;SY)") + ")",
		"D:(A;;FA;;;SY)(A;;FA;;;Acme":                                                                                                 "D:(A;;FA;;;SY)(" + h.sum("(A;;FA;;;Acme") + ")",
		"D:(A;;FA;;;SY)Acme(A;;;;;SY)":                                                                                                "D:(A;;FA;;;SY)" + h.sum("Acme(A;;;;;SY)"),
		"Acme":                                                                                                                        h.sum("Acme"),
	} {
		if got := h.hashed(in, aList); got != cmp.Or(want, in) {
			t.Errorf("%s becomes\n%s, want\n%s", in, got, cmp.Or(want, in))
		}
	}
	// An emulated node takes the list.
	if _, err := sddl.Parse(h.list("D:(A;;FA;;;S-1-5-21-1-2-3-1001)")); err != nil {
		t.Error(err)
	}
}

func TestHasher_Devices(t *testing.T) {
	h := newHasher()
	for in, want := range map[string]string{
		`PCI\VEN_15AD&DEV_0779&SUBSYS_077915AD&REV_03\3&61AAA01&0&A8`: `PCI\VEN_15AD&DEV_0779&SUBSYS_077915AD&REV_03\3&61AAA01&0&A8`,
		`ROOT\ISCSIPRT\0000`:                       `ROOT\ISCSIPRT\0000`,
		`PCI\VEN_WINSIM&DEV_SAS\0`:                 `PCI\VEN_WINSIM&DEV_SAS\0`,
		`USB\VID_174C&PID_55AA\msft30serial123456`: `USB\VID_174C&PID_55AA\` + h.sum("MSFT30SERIAL123456"),
		`PCI\VEN_8086&DEV_1533\A0369FFFFF123456`:   `PCI\VEN_8086&DEV_1533\` + h.sum("A0369FFFFF123456"),
		`SERIAL`:                                   h.sum("SERIAL"),
	} {
		for _, at := range []string{"StorageAdapters", "Description.Adapters", "RescanAdapter.adapter"} {
			if got := h.hashed(in, contents[at]); got != want {
				t.Errorf("%s: %s becomes %s, want %s", at, in, got, want)
			}
		}
	}
	for bus, hashed := range map[win.BusType]bool{
		win.BusTypeISCSI: true, win.BusTypeFibre: true, win.BusTypeSAS: true, win.BusTypeSCSI: false, win.BusTypeNVMe: false,
	} {
		want := win.DeviceDescriptor{BusType: bus, Vendor: "LIO-ORG", Product: "Acme"}
		answer := Answer[win.DeviceDescriptor]{Value: want}
		if hashed {
			want.Product = h.sum("ACME")
		}
		if got := h.hashed(Disk{Descriptor: answer}, aName).(Disk).Descriptor.Value; got != want {
			t.Errorf("bus %d: got %+v, want %+v", bus, got, want)
		}
		if got := h.hashed(win.DeviceDescriptor{BusType: bus}, aName); got != (win.DeviceDescriptor{BusType: bus}) {
			t.Errorf("bus %d: without a product, got %+v", bus, got)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, err := range []error{
		winerr.FileNotFound, winerr.ISCSITargetNotFound, winerr.StorageCacheOutOfDate, winerr.LegacyFormatAccessDenied,
		context.Canceled, context.DeadlineExceeded, winerr.New(winerr.Unavailable, "ask", "disk 3", "too many calls are stuck"), errors.New("other"),
	} {
		text, _ := json.Marshal(failureOf(fmt.Errorf("wrapped: %w", err)))
		var again *Failure
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		got := again.Err()
		if winerr.KindOf(got) != winerr.KindOf(err) || winerr.CodeOf(got) != winerr.CodeOf(err) || !again.Same(failureOf(err)) {
			t.Errorf("%v is %s, and then %v", err, text, got)
		}
	}
	if (*Failure)(nil).Err() != nil || failureOf(nil) != nil || !(*Failure)(nil).Same(nil) {
		t.Error("success is an error")
	}
}

// regexpPlace finds the texts of fill. Arguments have their number, for want of a name.
var regexpPlace = regexp.MustCompile(`zq ([A-Za-z]+(?:\.[A-Za-z]+)?(?: argument \d)?)`)

// publicArguments are the arguments that hold names of services.
var publicArguments = []string{
	"ServiceConfig argument 1", "ServiceStatus argument 1", "StartService argument 1", "StopService argument 1", "ActiveDependents argument 1",
}
