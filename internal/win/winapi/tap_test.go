package winapi_test

import (
	"bytes"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
)

func TestTap(t *testing.T) {
	winapi.Tapped(1, nil, nil, nil) // without a tap
	var got []byte
	winapi.Tap(func(code uint32, in, out []byte, _ error) {
		got = append(append(append(got, byte(code)), in...), out...)
	})
	defer winapi.Tap(nil)
	winapi.Tapped(7, []byte{1}, []byte{2, 3}, nil)
	winapi.Tap(nil)
	winapi.Tapped(8, nil, nil, nil)
	if !bytes.Equal(got, []byte{7, 1, 2, 3}) {
		t.Errorf("tapped %v", got)
	}
}
