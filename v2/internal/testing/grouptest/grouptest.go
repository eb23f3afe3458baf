// Package grouptest tests what all API groups of the library have in common.
package grouptest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// Cancelled returns a context that is over.
func Cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Call is one method of a group with a good request, with none, and with an empty one.
type Call[API any] struct {
	Do, doNil, doEmpty func(context.Context, API) (any, error)

	host    string // what the host sees of the good request
	answer  any
	emptyOK bool
}

// Method is a call whose good request the host sees as given, and answers as given.
func Method[API, In, Out any](m func(API, context.Context, *In) (*Out, error), in *In, host string, answer *Out) Call[API] {
	return Call[API]{Do: With(m, in), doNil: With(m, nil), doEmpty: With(m, new(In)), host: host, answer: answer}
}

// With calls a method with a request.
func With[API, In, Out any](m func(API, context.Context, *In) (*Out, error), in *In) func(context.Context, API) (any, error) {
	return func(ctx context.Context, api API) (any, error) { return m(api, ctx, in) }
}

// EmptyOK says that an empty request is a good one, too.
func (c Call[API]) EmptyOK() Call[API] {
	c.emptyOK = true
	return c
}

// EveryMethod tests all methods of a group, which on makes on a fake host: bad requests and those of callers who have
// left do not reach the host, good ones do, and its errors keep their kind and do not contain the secret.
func EveryMethod[API any](t *testing.T, calls map[string]Call[API], on func(t *testing.T, r *Recorder) API, secret string) {
	t.Helper()
	if got, want := len(calls), reflect.TypeFor[API]().NumMethod(); got != want {
		t.Fatalf("%d methods are tested, the group has %d", got, want)
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			host := &Recorder{}
			if _, err := call.doNil(t.Context(), on(t, host)); !errors.Is(err, winerr.Invalid) {
				t.Errorf("without a request: %v, want kind %v", err, winerr.Invalid)
			}
			if !call.emptyOK {
				if _, err := call.doEmpty(t.Context(), on(t, host)); !errors.Is(err, winerr.Invalid) {
					t.Errorf("with an empty request: %v, want kind %v", err, winerr.Invalid)
				}
			}
			if _, err := call.Do(Cancelled(t), on(t, host)); !errors.Is(err, context.Canceled) {
				t.Errorf("with a cancelled context: %v, want %v", err, context.Canceled)
			}
			answer, err := call.Do(t.Context(), on(t, host))
			if diff := cmp.Diff(call.answer, answer); err != nil || diff != "" {
				t.Errorf("good request: %v, answer (-want +got):\n%s", err, diff)
			}
			if want := []string{call.host}; !slices.Equal(host.Calls, want) {
				t.Errorf("host saw %q, want only the good request, %q", host.Calls, want)
			}
			for _, cause := range []error{winerr.Timeout, winerr.NoSuchDevice, winerr.AccessDenied, context.DeadlineExceeded, errors.New("lightning struck")} {
				_, err := call.Do(t.Context(), on(t, &Recorder{Err: cause}))
				if !errors.Is(err, cause) || winerr.KindOf(err) != winerr.KindOf(cause) {
					t.Errorf("host fails with %v: got %v of kind %v, want kind %v", cause, err, winerr.KindOf(err), winerr.KindOf(cause))
				}
				if err != nil && secret != "" && strings.Contains(err.Error(), secret) {
					t.Errorf("err = %q gives a secret away", err)
				}
			}
		})
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
