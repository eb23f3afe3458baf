package mounter_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/daemon"
	"github.com/kubernetes-csi/csi-proxy/v2/cmd/serve"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestNew_DetectsTheMode(t *testing.T) {
	t.Setenv("CSI_PROXY_SOCKET_DIR", filepath.Join(t.TempDir(), "none"))
	_, err := mounter.New(t.Context())
	for _, part := range []string{"daemon mode", "csi-proxy-filesystem-v1", "CONTAINER_SANDBOX_MOUNT_POINT"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("outside a container: %v, want %q", err, part)
		}
	}
	if class := failure.ClassOf(err); class != failure.Unavailable {
		t.Errorf("the class is %s, want unavailable", class)
	}
	t.Setenv("CONTAINER_SANDBOX_MOUNT_POINT", `C:\hpc`)
	m, err := mounter.New(t.Context())
	if err != nil || m.Mode() != mounter.Library {
		t.Fatalf("in a HostProcess container: %v, %v", m, err)
	}
}

func TestNew_RefusesAnUnknownMode(t *testing.T) {
	if _, err := mounter.New(t.Context(), mounter.In(9)); failure.ClassOf(err) != failure.Invalid {
		t.Errorf("%v, want an invalid argument", err)
	}
}

// TestWait: New returns when the daemon comes up, or its context ends.
func TestWait(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	nowhere := mounter.Pipes(func(group, version string) string { return filepath.Join(t.TempDir(), "none") })
	if _, err := mounter.New(ended, nowhere, mounter.Wait()); err == nil || !strings.Contains(err.Error(), "daemon mode") {
		t.Errorf("an ended context: %v", err)
	}
	node, err := winsim.New(winsim.Default())
	must(t, err)
	m, err := mounter.New(t.Context(), mountertest.Daemon(t, node), mounter.Wait())
	must(t, err)
	_ = m.Close()
}

// TestWorkingDirs: a Mounter in the mode Library changes nothing outside its directories.
func TestWorkingDirs(t *testing.T) {
	node, err := winsim.New(winsim.Default())
	must(t, err)
	m, err := mounter.New(t.Context(), mountertest.Library(node), mounter.WorkingDirs(`C:\k`))
	must(t, err)
	if _, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging, Disk: number(1)}); failure.ClassOf(err) != failure.Denied || node.Exists(staging) {
		t.Errorf("outside: %v, want not allowed", err)
	}
	if _, err := m.Stage(t.Context(), mounter.StageRequest{Path: `C:\k\staging`, Disk: number(1)}); err != nil {
		t.Errorf("inside: %v", err)
	}
	for _, dir := range []string{`C:\`, `C:\Windows\System32`, `C:\Users`} {
		if _, err := mounter.New(t.Context(), mountertest.Library(node), mounter.WorkingDirs(dir)); err == nil || !strings.Contains(err.Error(), "folder of Windows") {
			t.Errorf("%s: %v, want that a driver cannot have it", dir, err)
		}
	}
}

// TestDaemon_WithoutTheInspector: a driver whose container lacks the pipe of the group system, or
// the original daemon.
func TestDaemon_WithoutTheInspector(t *testing.T) {
	node, err := winsim.New(winsim.EBSNVMe())
	must(t, err)
	option := mountertest.DaemonWith(t, node, serve.Config{Config: daemon.Config{APIGroups: []string{"disk", "volume", "filesystem", "smb"}}})
	m, err := mounter.New(t.Context(), option)
	must(t, err)
	defer m.Close()
	for _, listErr := range []error{second(m.List()), second(m.GetMountRefs(staging))} {
		if failure.ClassOf(listErr) != failure.Unavailable || !strings.Contains(listErr.Error(), "csi-proxy-system-v1alpha1") {
			t.Errorf("%v, want unavailable with the name of the pipe", listErr)
		}
	}
	_, err = m.Stage(t.Context(), mounter.StageRequest{Path: staging, Disk: nodeapi.Query{EUI64: "0"}})
	if failure.ClassOf(err) != failure.Unavailable || !strings.Contains(err.Error(), "csi-proxy-system-v1alpha1") {
		t.Errorf("a key that only the inspector knows: %v", err)
	}
	ids, err := nodeapi.NewOn(node)
	must(t, err)
	found, err := ids.Describe(t.Context())
	must(t, err)
	staged, err := m.Stage(t.Context(), mounter.StageRequest{Path: staging, Disk: nodeapi.Query{Serial: found.Disks[1].Serial}})
	if err != nil || staged.DiskNumber != 1 {
		t.Fatalf("%+v, %v", staged, err)
	}
	must(t, m.Unstage(t.Context(), mounter.UnstageRequest{Path: staging, Offline: true}))
	if info, err := node.DiskInfo(1); err != nil || !info.Offline {
		t.Errorf("%+v, %v, want an offline disk", info, err)
	}
}

func second[T any](_ T, err error) error { return err }
