package api_test

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("here the calls would reach a real machine")
	}
	host := reflect.ValueOf(volumeapi.New())
	for method := range reflect.TypeFor[volumeapi.HostAPI]().Methods() {
		call := host.MethodByName(method.Name)
		var in []reflect.Value
		for parameter := range call.Type().Ins() {
			in = append(in, reflect.Zero(parameter))
		}
		out := call.Call(in)
		err, _ := reflect.TypeAssert[error](out[len(out)-1])
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s = %v, want an error like %v", method.Name, err, errors.ErrUnsupported)
		}
	}
}

func TestVolumeRegexp(t *testing.T) {
	const name = "Volume{4c1b02c1-d990-11dc-99ae-806e6f6e6963}"
	if got := volumeapi.VolumeRegexp.FindString(`\\?\` + name + `\`); got != name {
		t.Errorf("found %q in a volume id, want %q", got, name)
	}
	if got := volumeapi.VolumeRegexp.FindString(`C:\Volume`); got != "" {
		t.Errorf("found %q in a path that is no volume id", got)
	}
}
