package winapi_test

import (
	"errors"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

func TestConfigRet(t *testing.T) {
	for ret, want := range map[uint32]error{
		0x00: nil,
		0x0D: winerr.NoSuchDevice,
		0x13: winerr.Code(31), // CR_FAILURE
		0x1E: winerr.InvalidName,
		0x33: winerr.AccessDenied,
		0x99: winerr.Code(31),
	} {
		if got := winapi.ConfigError(ret); !errors.Is(got, want) {
			t.Errorf("CONFIGRET %#02x: %v, want %v", ret, got, want)
		}
	}
}
