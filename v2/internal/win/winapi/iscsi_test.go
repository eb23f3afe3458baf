package winapi_test

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestISDSCStatus(t *testing.T) {
	if err := winapi.ISCSIError(0); err != nil {
		t.Errorf("0 is %v", err)
	}
	for _, code := range []winerr.Code{5, 0x8007007A, 0xEFFF0040} {
		if err := winapi.ISCSIError(uint32(code)); winerr.CodeOf(err) != code {
			t.Errorf("%#x is %v", uint32(code), err)
		}
	}
}

func TestList_Grow(t *testing.T) {
	for _, c := range []struct {
		name  string
		sizes []uint32 // of the list, at each try
		code  winerr.Code
		mute  bool // about what it wants
		tries int
		want  int // bytes; -1 is a failure
	}{
		{name: "empty", sizes: []uint32{0}, tries: 1, want: 0},
		{name: "fits", sizes: []uint32{4}, tries: 1, want: 40},
		{name: "second try", sizes: []uint32{9}, code: 122, tries: 2, want: 90},
		{name: "as HRESULT", sizes: []uint32{9}, code: 0x8007007A, tries: 2, want: 90},
		{name: "as ISDSC", sizes: []uint32{9}, code: 0xEFFF0054, tries: 2, want: 90},
		{name: "as success", sizes: []uint32{9}, tries: 2, want: 90},
		{name: "without a number", sizes: []uint32{20}, code: 122, mute: true, tries: 3, want: 200},
		{name: "grows meanwhile", sizes: []uint32{5, 60, 200, 200}, code: 122, tries: 4, want: 2000},
		{name: "grows for ever", sizes: []uint32{5, 100, 1000, 10000, 100000, 0}, code: 122, tries: 5, want: -1},
		{name: "says nonsense", sizes: []uint32{0xFFFFFFFF}, code: 122, tries: 1, want: -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			tries := 0
			got, err := winapi.GrowList(10, 4, func(buffer []byte, room uint32) (uint32, error) {
				size := c.sizes[min(tries, len(c.sizes)-1)]
				tries++
				if len(buffer) != int(room)*10 {
					t.Fatalf("%d bytes are room for %d", len(buffer), room)
				}
				switch {
				case size <= room:
					return size, nil
				case c.code == 0:
					return size, nil
				case c.mute:
					return 0, c.code
				default:
					return size, c.code
				}
			})
			if tries != c.tries || (err == nil && len(got) != c.want) || (err != nil) != (c.want < 0) {
				t.Errorf("%d bytes, %v, after %d tries, want %d after %d", len(got), err, tries, c.want, c.tries)
			}
			if err != nil && !errors.Is(err, winerr.InsufficientBuffer) {
				t.Errorf("failed with %v", err)
			}
		})
	}
	tries := 0
	if _, err := winapi.GrowList(1, 1, func([]byte, uint32) (uint32, error) {
		tries++
		return 0, winerr.ISCSIServiceNotRunning
	}); !errors.Is(err, winerr.ISCSIServiceNotRunning) || tries != 1 {
		t.Errorf("another failure is %v after %d tries", err, tries)
	}
}
