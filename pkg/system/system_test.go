package system_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

// fakeHost notes its calls, gives the same service to everyone, and fails every
// call if err is set.
type fakeHost struct {
	err   error
	info  *systemapi.ServiceInfo
	calls []string
}

func (f *fakeHost) note(format string, args ...any) error {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return f.err
}

func (f *fakeHost) GetBIOSSerialNumber() (string, error) {
	return "VMware-42 0a", f.note("serial")
}

func (f *fakeHost) GetService(name string) (*systemapi.ServiceInfo, error) {
	return f.info, f.note("get %s", name)
}

func (f *fakeHost) StartService(name string) error { return f.note("start %s", name) }

func (f *fakeHost) StopService(name string, force bool) error {
	return f.note("stop %s force=%v", name, force)
}

func newSystem(t *testing.T, host systemapi.HostAPI) *system.System {
	t.Helper()
	s, err := system.New(host)
	require.NoError(t, err)
	return s
}

// cancelled returns a context that is over.
func cancelled(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestNew_NilHost(t *testing.T) {
	if _, err := system.New(nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("New(nil) = %v, want an invalid-argument error", err)
	}
}

func TestSystem_GetBIOSSerialNumber(t *testing.T) {
	got, err := newSystem(t, &fakeHost{}).GetBIOSSerialNumber(t.Context(), &system.GetBIOSSerialNumberRequest{})
	require.NoError(t, err)
	if want := "VMware-42 0a"; got.SerialNumber != want {
		t.Errorf("SerialNumber = %q, want %q", got.SerialNumber, want)
	}
}

func TestSystem_GetService_Status(t *testing.T) {
	tests := map[string]system.ServiceStatus{
		"Stopped":          system.SERVICE_STATUS_STOPPED,
		"Start Pending":    system.SERVICE_STATUS_START_PENDING,
		"Stop Pending":     system.SERVICE_STATUS_STOP_PENDING,
		"Running":          system.SERVICE_STATUS_RUNNING,
		"Continue Pending": system.SERVICE_STATUS_CONTINUE_PENDING,
		"Pause Pending":    system.SERVICE_STATUS_PAUSE_PENDING,
		"Paused":           system.SERVICE_STATUS_PAUSED,
		"Unknown":          system.SERVICE_STATUS_UNKNOWN,
		"Daydreaming":      system.SERVICE_STATUS_UNKNOWN,
		"":                 system.SERVICE_STATUS_UNKNOWN,
	}
	for word, want := range tests {
		host := &fakeHost{info: &systemapi.ServiceInfo{DisplayName: "iSCSI", StartType: "Manual", Status: word}}
		got, err := newSystem(t, host).GetService(t.Context(), &system.GetServiceRequest{Name: "MSiSCSI"})
		if err != nil {
			t.Errorf("%q: %v", word, err)
			continue
		}
		wantAll := &system.GetServiceResponse{DisplayName: "iSCSI", StartType: system.START_TYPE_MANUAL, Status: want}
		if diff := cmp.Diff(wantAll, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", word, diff)
		}
	}
}

func TestSystem_GetService_StartType(t *testing.T) {
	tests := map[string]system.StartType{
		"Boot":      system.START_TYPE_BOOT,
		"System":    system.START_TYPE_SYSTEM,
		"Auto":      system.START_TYPE_AUTOMATIC,
		"Automatic": system.START_TYPE_AUTOMATIC,
		"Manual":    system.START_TYPE_MANUAL,
		"Disabled":  system.START_TYPE_DISABLED,
	}
	for word, want := range tests {
		host := &fakeHost{info: &systemapi.ServiceInfo{StartType: word, Status: "Running"}}
		got, err := newSystem(t, host).GetService(t.Context(), &system.GetServiceRequest{Name: "MSiSCSI"})
		if err != nil || got.StartType != want {
			t.Errorf("%q = %v, %v, want %v", word, got, err, want)
		}
	}
}

func TestSystem_GetService_StrangeAnswer(t *testing.T) {
	tests := []struct {
		name string
		info *systemapi.ServiceInfo
		text string
	}{
		{"unknown start type", &systemapi.ServiceInfo{StartType: "Whenever"}, `"Whenever"`},
		{"no start type", &systemapi.ServiceInfo{}, `""`},
		{"no answer", nil, "no answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newSystem(t, &fakeHost{info: tt.info}).GetService(t.Context(), &system.GetServiceRequest{Name: "MSiSCSI"})
			if !errors.Is(err, winerr.Internal) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("err = %v, want one of kind %v that contains %s", err, winerr.Internal, tt.text)
			}
		})
	}
}

func TestSystem_StartAndStop(t *testing.T) {
	host := &fakeHost{}
	s := newSystem(t, host)
	if _, err := s.StartService(t.Context(), &system.StartServiceRequest{Name: "MSiSCSI"}); err != nil {
		t.Error(err)
	}
	for _, force := range []bool{false, true} {
		if _, err := s.StopService(t.Context(), &system.StopServiceRequest{Name: "MSiSCSI", Force: force}); err != nil {
			t.Error(err)
		}
	}
	want := []string{"start MSiSCSI", "stop MSiSCSI force=false", "stop MSiSCSI force=true"}
	if !slices.Equal(host.calls, want) {
		t.Errorf("host saw %q, want %q", host.calls, want)
	}
}

// call is one method with a good request, with no request, and with an empty one.
type call struct {
	do, doNil, doEmpty func(context.Context, system.Interface) error
}

func method[In, Out any](m func(system.Interface, context.Context, *In) (*Out, error), in *In) call {
	with := func(in *In) func(context.Context, system.Interface) error {
		return func(ctx context.Context, s system.Interface) error {
			_, err := m(s, ctx, in)
			return err
		}
	}
	return call{with(in), with(nil), with(new(In))}
}

func TestSystem_EveryMethod(t *testing.T) {
	calls := map[string]call{
		"GetBIOSSerialNumber": method(system.Interface.GetBIOSSerialNumber, &system.GetBIOSSerialNumberRequest{}),
		"GetService":          method(system.Interface.GetService, &system.GetServiceRequest{Name: "MSiSCSI"}),
		"StartService":        method(system.Interface.StartService, &system.StartServiceRequest{Name: "MSiSCSI"}),
		"StopService":         method(system.Interface.StopService, &system.StopServiceRequest{Name: "MSiSCSI"}),
	}
	if got, want := len(calls), reflect.TypeFor[system.Interface]().NumMethod(); got != want {
		t.Fatalf("%d methods are tested, Interface has %d", got, want)
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			idle := &fakeHost{}
			if err := call.doNil(t.Context(), newSystem(t, idle)); !errors.Is(err, winerr.Invalid) {
				t.Errorf("without a request: %v, want kind %v", err, winerr.Invalid)
			}
			if err := call.do(cancelled(t), newSystem(t, idle)); !errors.Is(err, context.Canceled) {
				t.Errorf("with a cancelled context: %v, want %v", err, context.Canceled)
			}
			if name != "GetBIOSSerialNumber" {
				if err := call.doEmpty(t.Context(), newSystem(t, idle)); !errors.Is(err, winerr.Invalid) {
					t.Errorf("without a name: %v, want kind %v", err, winerr.Invalid)
				}
			}
			if len(idle.calls) != 0 {
				t.Errorf("host saw %q, want nothing", idle.calls)
			}
			for _, cause := range []error{winerr.AccessDenied, context.DeadlineExceeded, errors.New("lightning struck")} {
				err := call.do(t.Context(), newSystem(t, &fakeHost{err: cause}))
				if !errors.Is(err, cause) || winerr.KindOf(err) != winerr.KindOf(cause) {
					t.Errorf("host fails with %v: got %v of kind %v, want kind %v", cause, err, winerr.KindOf(err), winerr.KindOf(cause))
				}
			}
		})
	}
}
