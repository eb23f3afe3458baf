package system_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	systemapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/system/hostapi"
)

// fakeHost gives the same service to everyone.
type fakeHost struct {
	systemapi.HostAPI // nil: nothing else is called
	*grouptest.Recorder
	info *systemapi.ServiceInfo
}

func (f fakeHost) GetService(name string) (*systemapi.ServiceInfo, error) {
	return f.info, f.Note("get", name)
}

func (f fakeHost) StopService(name string, force bool) error {
	return f.Note("stop", name, "force", force)
}

func newSystem(t *testing.T, host systemapi.HostAPI) *system.System {
	t.Helper()
	s, err := system.New(host)
	require.NoError(t, err)
	return s
}

func TestNew_NilHost(t *testing.T) {
	if _, err := system.New(nil); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("New(nil) = %v, want an invalid-argument error", err)
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
		host := fakeHost{Recorder: &grouptest.Recorder{}, info: &systemapi.ServiceInfo{DisplayName: "iSCSI", StartType: "Manual", Status: word}}
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
		host := fakeHost{Recorder: &grouptest.Recorder{}, info: &systemapi.ServiceInfo{StartType: word, Status: "Running"}}
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
			_, err := newSystem(t, fakeHost{Recorder: &grouptest.Recorder{}, info: tt.info}).GetService(t.Context(), &system.GetServiceRequest{Name: "MSiSCSI"})
			if !errors.Is(err, winerr.Internal) || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("err = %v, want one of kind %v that contains %s", err, winerr.Internal, tt.text)
			}
		})
	}
}

func TestSystem_EveryMethod(t *testing.T) {
	grouptest.EveryMethod[system.Interface](t, newSystem(t, fakeHost{}))
}
