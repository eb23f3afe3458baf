package api_test

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("here the calls would reach a real machine")
	}
	host := reflect.ValueOf(smbapi.New())
	for i := range reflect.TypeFor[smbapi.HostAPI]().NumMethod() {
		method := reflect.TypeFor[smbapi.HostAPI]().Method(i)
		call := host.MethodByName(method.Name)
		if method.Name == "NewSMBLink" {
			continue // takes a local path, too, and is called below
		}
		var in []reflect.Value
		for i := range call.Type().NumIn() {
			parameter := call.Type().In(i)
			in = append(in, reflect.ValueOf(`\\server\share`).Convert(parameter))
		}
		out := call.Call(in)
		err, _ := reflect.TypeAssert[error](out[len(out)-1])
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s = %v, want an error like %v", method.Name, err, errors.ErrUnsupported)
		}
	}
	if err := smbapi.New().NewSMBLink(`\\server\share`, `C:\link`); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("NewSMBLink = %v, want an error like %v", err, errors.ErrUnsupported)
	}
}
