package system_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/grouptest"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/system"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestAllowedServices(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	require.NoError(t, err)
	s, err := system.New(node.System(), system.AllowedServices("MSiSCSI", "LanmanWorkstation", "nsi"))
	require.NoError(t, err)
	start := func(name string) error {
		_, err := s.StartService(t.Context(), &system.StartServiceRequest{Name: name})
		return err
	}
	stop := func(name string, force bool) error {
		_, err := s.StopService(t.Context(), &system.StopServiceRequest{Name: name, Force: force})
		return err
	}
	require.NoError(t, errors.Join(start("msiscsi"), stop("MSISCSI", true)), "a listed service:")
	for _, name := range []string{"vds", "kubelet", "RpcSs", "csi-proxy"} {
		for _, err := range []error{start(name), stop(name, false), stop(name, true)} {
			if !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want it denied", name, err)
			}
		}
	}
	// The host has the list as well: SessionEnv and hns depend on these.
	for _, name := range []string{"LanmanWorkstation", "nsi"} {
		if err := stop(name, true); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: %v, want it denied", name, err)
		}
	}
	if _, err := s.GetService(t.Context(), &system.GetServiceRequest{Name: "kubelet"}); err != nil {
		t.Errorf("a question: %v", err)
	}
}

func TestAllowedServices_Refuses(t *testing.T) {
	for _, name := range []string{"", "a\x00b", "kubelet"} {
		if _, err := system.New(fakeHost{Recorder: &grouptest.Recorder{}}, system.AllowedServices("MSiSCSI", name)); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%q: %v, want it refused", name, err)
		}
	}
}

// TestAllowedServices_ForeignHost: a host that knows nothing of lists is not trusted to
// stop others than the one that was named.
func TestAllowedServices_ForeignHost(t *testing.T) {
	host := fakeHost{Recorder: &grouptest.Recorder{}}
	s, err := system.New(host, system.AllowedServices("*"))
	require.NoError(t, err)
	if _, err := s.StopService(t.Context(), &system.StopServiceRequest{Name: "MSiSCSI", Force: true}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("with force: %v, want it denied", err)
	}
	if _, err := s.StopService(t.Context(), &system.StopServiceRequest{Name: "kubelet"}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a protected one: %v, want it denied", err)
	}
	if _, err := s.StopService(t.Context(), &system.StopServiceRequest{Name: "MSiSCSI"}); err != nil {
		t.Error(err)
	}
	if want := []string{"stop MSiSCSI force false"}; !slices.Equal(host.Calls, want) {
		t.Errorf("host saw %q, want %q", host.Calls, want)
	}
}

// TestSystem_HostileNames: no name that Windows could not know reaches the host, and none
// makes an error long.
func TestSystem_HostileNames(t *testing.T) {
	host := fakeHost{Recorder: &grouptest.Recorder{}}
	s := newSystem(t, host)
	for what, name := range map[string]string{
		"empty": "", "NUL": "MSiSCSI\x00", "only NULs": strings.Repeat("\x00", 100), "controls": "a\x07\x1b[2Jb", "line feed": "a\r\nb",
		"path": `..\..\x`, "slash": "a/b", "too long": strings.Repeat("x", 257), "ten megabytes": strings.Repeat("x", 10<<20),
		"ten megabytes of nothing": strings.Repeat("\x00", 10<<20), "no text": "\xff\xfe", "surrogates": "\xed\xa0\x80", "spaces": "   ",
	} {
		_, getErr := s.GetService(t.Context(), &system.GetServiceRequest{Name: name})
		_, startErr := s.StartService(t.Context(), &system.StartServiceRequest{Name: name})
		_, stopErr := s.StopService(t.Context(), &system.StopServiceRequest{Name: name, Force: true})
		for _, err := range []error{getErr, startErr, stopErr} {
			if !errors.Is(err, winerr.Invalid) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x00\x1b\r\n") {
				t.Errorf("%s: %.2000q, want it refused in a few words", what, err)
			}
		}
	}
	if len(host.Calls) != 0 {
		t.Errorf("host saw %q", host.Calls)
	}
}

// FuzzSystem_Names: whatever the name is, nothing panics, and what is protected is left alone.
func FuzzSystem_Names(f *testing.F) {
	for _, name := range []string{"MSiSCSI", "kubelet", "RpcSs\x00", "csi-proxy", "\xff", ""} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		node, err := winsim.New(winsim.Default())
		require.NoError(t, err)
		s, err := system.New(node.System(), system.AllowedServices("*"))
		require.NoError(t, err)
		_, _ = s.GetService(t.Context(), &system.GetServiceRequest{Name: name})
		_, _ = s.StartService(t.Context(), &system.StartServiceRequest{Name: name})
		_, _ = s.StopService(t.Context(), &system.StopServiceRequest{Name: name, Force: true})
		for _, protected := range []string{"csi-proxy", "kubelet", "containerd", "RpcSs", "DcomLaunch", "RpcEptMapper", "vmcompute", "hns"} {
			if info, err := node.ServiceInfo(protected); err != nil || info.State != winsim.ServiceRunning {
				t.Fatalf("%q: %s is %+v, %v", name, protected, info, err)
			}
		}
	})
}
