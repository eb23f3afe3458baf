package cim

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestWQL(t *testing.T) {
	for _, c := range []struct {
		object Object
		want   string
	}{
		{Object{Namespace: V2, Class: "Win32_BIOS"}, `SELECT * FROM Win32_BIOS`},
		{
			Object{Namespace: Storage, Class: "MSFT_Volume", Property: "UniqueId", Value: `\\?\Volume{3a1c2b4d-0000-0000-0000-501f00000000}\`},
			`SELECT * FROM MSFT_Volume WHERE UniqueId = '\\\\?\\Volume{3a1c2b4d-0000-0000-0000-501f00000000}\\'`,
		},
		{Object{Namespace: V2, Class: "Win32_Share", Property: "Name", Value: `x' OR Name <> '`}, `SELECT * FROM Win32_Share WHERE Name = 'x\' OR Name <> \''`},
		{Object{Namespace: V2, Class: "Win32_Share", Property: "Name", Value: `x\' OR 1=1`}, `SELECT * FROM Win32_Share WHERE Name = 'x\\\' OR 1=1'`},
		{Object{Namespace: V2, Class: "Win32_Share", Property: "Name", Value: ""}, `SELECT * FROM Win32_Share WHERE Name = ''`},
	} {
		if got := wql(c.object); got != c.want {
			t.Errorf("%+v:\n%s, want\n%s", c.object, got, c.want)
		}
	}
}

func TestVariants(t *testing.T) {
	got, err := variants(map[string]any{
		"text": "NTFS", "yes": true, "u8": uint8(255), "u16": uint16(65535), "u32": uint32(math.MaxUint32), "u64": uint64(math.MaxUint64),
	})
	want := map[string]any{
		"text": "NTFS", "yes": true, "u8": int32(255), "u16": int32(65535), "u32": int32(-1), "u64": "18446744073709551615",
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, value := range []any{nil, 1, 1.5, []int{1}, struct{}{}, &want} {
		if got, err := variants(map[string]any{"x": value}); err == nil {
			t.Errorf("%T became %v, want an error", value, got)
		}
	}
}

func TestScalar(t *testing.T) {
	for _, c := range []struct{ value, want any }{
		{"text", "text"},
		{true, true},
		{nil, nil},
		{int8(-1), int64(-1)},
		{uint8(255), int64(255)},
		{int16(-1), int64(-1)},
		{uint16(65535), int64(65535)},
		{int32(-1), int64(-1)},
		{uint32(math.MaxUint32), int64(math.MaxUint32)},
		{int64(-1), int64(-1)},
		{1.5, nil},
		{[]string{"x"}, nil},
		{[]any{int32(5), "x"}, nil},
		{[]any{int32(2), uint16(0xD005)}, []int64{2, 0xD005}},
	} {
		if got := scalar(c.value); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%T %v became %T %v, want %T %v", c.value, c.value, got, got, c.want, c.want)
		}
	}
}

func TestFailure(t *testing.T) {
	for _, c := range []struct {
		name           string
		hresult, scode uint32
		code           winerr.Code
		kind           winerr.Kind
	}{
		{"code of Windows", 0x80070005, 0, winerr.AccessDenied, winerr.Denied},
		{"code of Windows in an exception", 0x80020009, 0x80070035, winerr.BadNetPath, winerr.Unavailable},
		{"code of WMI in an exception", 0x80020009, 0x80041002, winerr.WMINotFound, winerr.NotFound},
		{"exception without a code", 0x80020009, 0, 0x80020009, winerr.Internal},
		{"a code beside something else than an exception", 0x80020006, 0x80070005, 0x80020006, winerr.Internal},
		{"service down", 0x800706BA, 0, 1722, winerr.Unavailable},
		{"call failed", 0x800706BE, 0, 1726, winerr.Unavailable},
		{"call not executed", 0x800706BF, 0, 1727, winerr.Unavailable},
		{"server died", 0x80010007, 0, 0x80010007, winerr.Unavailable},
		{"server died, in an exception", 0x80020009, 0x80010007, 0x80010007, winerr.Unavailable},
		{"server died before it executed", 0x80010012, 0, 0x80010012, winerr.Unavailable},
		{"disconnected", 0x80010108, 0, 0x80010108, winerr.Unavailable},
		{"transport", 0x80020009, 0x80041015, 0x80041015, winerr.Unavailable},
		{"shutting down", 0x80020009, 0x80041033, 0x80041033, winerr.Unavailable},
		{"denied", 0x80020009, 0x80041003, 0x80041003, winerr.Denied},
		{"no such namespace", 0x80020009, 0x8004100E, 0x8004100E, winerr.Unsupported},
		{"no such class", 0x80020009, 0x80041010, 0x80041010, winerr.Unsupported},
		{"no WMI at all", 0x80040154, 0, 0x80040154, winerr.Unsupported},
		{"success in a field for failures", 0x00070005, 0, 0x00070005, winerr.Internal},
	} {
		var err error = failure(c.hresult, c.scode, "")
		if got := failure(c.hresult, c.scode, "").disconnected(); got != (c.kind == winerr.Unavailable && c.code != winerr.BadNetPath) {
			t.Errorf("%s: disconnected: %v", c.name, got)
		}
		if got, want := mayHaveRun(err), c.code != 1727 && c.code != 0x80010012; got != want {
			t.Errorf("%s: may have run: %v", c.name, got)
		}
		wrapped := fmt.Errorf("format: %w", err)
		for _, err := range []error{err, wrapped} {
			if code, kind := winerr.CodeOf(err), winerr.KindOf(err); code != c.code || kind != c.kind {
				t.Errorf("%s: code %#x of kind %q, want %#x of kind %q", c.name, uint32(code), kind, uint32(c.code), c.kind)
			}
			if !errors.Is(err, c.code) {
				t.Errorf("%s: %v is not its own code", c.name, err)
			}
			for _, kind := range winerr.Kinds() {
				if got := errors.Is(err, kind); got != (kind == c.kind) {
					t.Errorf("%s: errors.Is(err, %q) = %v", c.name, kind, got)
				}
			}
		}
	}
}

func TestError_Text(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{failure(0x80020009, 0x80070005, " Access is denied. \r\n"), "WMI: Access is denied.: access is denied (Windows error 5)"},
		{failure(0x8004100E, 0, ""), "WMI: Windows error 0x8004100e"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
