package api_test

import (
	"errors"
	"reflect"
	"runtime"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	iscsiapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/iscsi/hostapi"
)

// callAll makes every call of a host with good arguments, or with the given portal.
func callAll(t *testing.T, host iscsiapi.HostAPI, portal *iscsiapi.TargetPortal, check func(method string, err error)) {
	t.Helper()
	arguments := map[string][]any{
		"AddTargetPortal": {portal}, "DiscoverTargetPortal": {portal}, "RemoveTargetPortal": {portal}, "ListTargetPortals": {},
		"ConnectTarget": {portal, target, "NONE", "", ""}, "DisconnectTarget": {portal, target}, "GetTargetDisks": {portal, target},
		"SetMutualChapSecret": {secret},
	}
	for i := range reflect.TypeFor[iscsiapi.HostAPI]().NumMethod() {
		method := reflect.TypeFor[iscsiapi.HostAPI]().Method(i)
		var in []reflect.Value
		for _, argument := range arguments[method.Name] {
			in = append(in, reflect.ValueOf(argument))
		}
		out := reflect.ValueOf(host).MethodByName(method.Name).Call(in)
		err, _ := reflect.TypeAssert[error](out[len(out)-1])
		check(method.Name, err)
	}
}

func TestNew_OtherSystems(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("here the calls would reach a real machine")
	}
	callAll(t, iscsiapi.New(), portal(), func(method string, err error) {
		if !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s = %v, want an error like %v", method, err, errors.ErrUnsupported)
		}
	})
}

func TestHost_BadArguments(t *testing.T) {
	node, host := newNode(t, model())
	for name, portal := range map[string]*iscsiapi.TargetPortal{"nil": nil, "port 0": {Address: "10.0.0.10"}, "port 65536": {Address: "10.0.0.10", Port: 65536}} {
		callAll(t, host, portal, func(method string, err error) {
			if method != "ListTargetPortals" && method != "SetMutualChapSecret" {
				wantKind(t, method+" with "+name, err, winerr.Invalid, "portal")
			}
		})
	}
	wantKind(t, "type", host.ConnectTarget(portal(), target, "CHAP", "", ""), winerr.Invalid, "ONEWAYCHAP")
	wantCalls(t, node, "Login", 0)
}

// TestHost_ServiceDown: whichever way Windows says it, the answer names the service.
func TestHost_ServiceDown(t *testing.T) {
	for _, code := range []winerr.Code{0xEFFF003E, 0xEFFF0039, 1722} {
		node, host := newNode(t, model())
		inject(t, node, fault("", code))
		callAll(t, host, portal(), func(method string, err error) {
			wantKind(t, method, err, winerr.InUse, "MSiSCSI", "StartService")
		})
	}
}
