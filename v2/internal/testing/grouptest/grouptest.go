// Package grouptest tests what all API groups of the library have in common.
package grouptest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Recorder is for fake hosts: it notes their calls, and fails them all if Err is set.
type Recorder struct {
	Err   error
	Calls []string
}

// Note adds a call.
func (r *Recorder) Note(words ...any) error {
	r.Calls = append(r.Calls, strings.TrimSpace(fmt.Sprintln(words...)))
	return r.Err
}

// With calls a method with a request.
func With[API, In, Out any](m func(API, context.Context, *In) (*Out, error), in *In) func(context.Context, API) (any, error) {
	return func(ctx context.Context, api API) (any, error) { return m(api, ctx, in) }
}

// EveryMethod checks that no method of a group begins without a request, or for a caller who has left. The group is on a
// host that panics when it is called.
func EveryMethod[API any](t *testing.T, api API) {
	t.Helper()
	left, leave := context.WithCancel(t.Context())
	leave()
	for i := range reflect.TypeFor[API]().NumMethod() {
		method := reflect.TypeFor[API]().Method(i)
		request := method.Type.In(1)
		if request.Kind() != reflect.Pointer { // Health of package volume takes an id
			continue
		}
		for want, in := range map[error][]reflect.Value{
			winerr.Invalid:   {reflect.ValueOf(t.Context()), reflect.Zero(request)},
			context.Canceled: {reflect.ValueOf(left), reflect.New(request.Elem())},
		} {
			out := reflect.ValueOf(api).MethodByName(method.Name).Call(in)
			if err, _ := reflect.TypeAssert[error](out[1]); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", method.Name, err, want)
			}
		}
	}
}

// Unsupported checks that a host of this machine, which is not Windows, says so whatever is called. Its API is that of
// the interface; argument returns what a method gets for its n-th parameter.
func Unsupported[API any](t *testing.T, host API, argument func(method string, n int, parameter reflect.Type) reflect.Value) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("here the calls would reach a real machine")
	}
	for i := range reflect.TypeFor[API]().NumMethod() {
		method := reflect.TypeFor[API]().Method(i)
		call := reflect.ValueOf(host).MethodByName(method.Name)
		var in []reflect.Value
		for n := range call.Type().NumIn() {
			in = append(in, argument(method.Name, n, call.Type().In(n)))
		}
		out := call.Call(in)
		if err, _ := reflect.TypeAssert[error](out[len(out)-1]); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s = %v, want an error like %v", method.Name, err, errors.ErrUnsupported)
		}
	}
}

// Zero is an argument of Unsupported: the zero value of each type.
func Zero(_ string, _ int, parameter reflect.Type) reflect.Value { return reflect.Zero(parameter) }
