package api_test

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("here the calls would reach a real machine")
	}
	host := reflect.ValueOf(systemapi.New())
	for i := range reflect.TypeFor[systemapi.HostAPI]().NumMethod() {
		method := reflect.TypeFor[systemapi.HostAPI]().Method(i)
		call := host.MethodByName(method.Name)
		var in []reflect.Value
		for i := range call.Type().NumIn() {
			parameter := call.Type().In(i)
			in = append(in, reflect.Zero(parameter))
		}
		out := call.Call(in)
		err, _ := reflect.TypeAssert[error](out[len(out)-1])
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s = %v, want an error like %v", method.Name, err, errors.ErrUnsupported)
		}
	}
}
