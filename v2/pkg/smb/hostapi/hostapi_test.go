package api_test

import (
	"reflect"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	smbapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/smb/hostapi"
)

func TestNew_OtherSystems(t *testing.T) {
	grouptest.Unsupported[smbapi.HostAPI](t, smbapi.New(), func(method string, n int, parameter reflect.Type) reflect.Value {
		if method == "NewSMBLink" && n == 1 {
			return reflect.ValueOf(`C:\link`)
		}
		return reflect.ValueOf(`\\server\share`).Convert(parameter)
	})
}
