//go:build windows && wine

package mountertest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
)

// These tests run on the rig of v2/test/wine, one after the other, with a restart of the machine between the
// first two: they take a volume and a share through their lives over system calls. WINE_RIG_MODE is the
// mode.

// rigDisk is a blank disk of the rig.
const rigDisk = 8

func newRigKit(t *testing.T) (context.Context, *mounter.Mounter) {
	t.Helper()
	mode, ok := map[string]mounter.Mode{"daemon": mounter.Daemon, "library": mounter.Library}[os.Getenv("WINE_RIG_MODE")]
	if !ok {
		t.Skip("WINE_RIG_MODE is not set; v2/test/wine runs this test on its rig")
	}
	options := []mounter.Option{mounter.WithMode(mode)}
	if mode == mounter.Daemon {
		options = append(options, mounter.WithWait())
	}
	m, err := mounter.New(t.Context(), options...)
	must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return t.Context(), m
}

// twice makes a call and repeats it, as the kubelet does.
func twice(t *testing.T, what string, call func() error) {
	t.Helper()
	for range 2 {
		if err := call(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func write(t *testing.T, content string, path ...string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(path...), []byte(content), 0o600))
}

func wantFile(t *testing.T, want string, path ...string) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(path...)); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v, want %q", filepath.Join(path...), got, err, want)
	}
}

func wantGone(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", path, err)
	}
}

// TestRig_BeforeRestart stages and publishes a volume, and writes a file as a pod does.
func TestRig_BeforeRestart(t *testing.T) {
	ctx, m := newRigKit(t)
	var staged mounter.Staged
	twice(t, "stage", func() (err error) {
		staged, err = m.Stage(ctx, mounter.StageRequest{Path: staging, Source: number(rigDisk)})
		return err
	})
	twice(t, "publish", func() error { return m.Publish(ctx, staging, target) })
	write(t, "data", target, "file")
	wantFile(t, "data", staging, "file")
	wantFile(t, "data", staged.VolumeID+"file")
	if leads, err := os.Readlink(target); err != nil || !strings.EqualFold(leads, staging) {
		t.Errorf("the pod's path leads to %q, %v, want %s", leads, err, staging)
	}
	for _, path := range []string{staging, target} {
		if usage, err := m.Stats(ctx, path); err != nil || usage.TotalBytes < 1<<30 {
			t.Errorf("%s: %+v, %v", path, usage, err)
		}
		if notMounted, err := m.IsLikelyNotMountPoint(path); err != nil || notMounted {
			t.Errorf("%s is not mounted: %v, %v", path, notMounted, err)
		}
	}
	// A driver that takes the pod's path for the staging path is refused, and the pod keeps its volume.
	if err := m.Unstage(ctx, mounter.UnstageRequest{Path: target}); failure.ClassOf(err) != failure.InUse {
		t.Errorf("unstage the pod's path: %v, want %v", err, failure.InUse)
	}
	wantFile(t, "data", target, "file")
}

// TestRig_AfterRestart finds the volume where it was, at the pod's path, too. It takes the volume away, and mounts
// it at another path.
func TestRig_AfterRestart(t *testing.T) {
	ctx, m := newRigKit(t)
	wantFile(t, "data", staging, "file")
	wantFile(t, "data", target, "file")
	twice(t, "stage", func() error {
		_, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Source: number(rigDisk)})
		return err
	})
	twice(t, "publish", func() error { return m.Publish(ctx, staging, target) })
	wantFile(t, "data", target, "file")
	twice(t, "unpublish", func() error { return m.Unpublish(ctx, target) })
	wantGone(t, target)
	wantFile(t, "data", staging, "file")
	twice(t, "unstage", func() error { return m.Unstage(ctx, mounter.UnstageRequest{Path: staging}) })
	wantGone(t, staging)

	const other = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\2\globalmount`
	twice(t, "stage elsewhere", func() error {
		_, err := m.Stage(ctx, mounter.StageRequest{Path: other, Source: number(rigDisk)})
		return err
	})
	wantFile(t, "data", other, "file")
	twice(t, "unstage and take offline", func() error {
		return m.Unstage(ctx, mounter.UnstageRequest{Path: other, Offline: true, Source: number(rigDisk)})
	})
	wantGone(t, other)
}

// TestRig_Share: what csi-driver-smb reads with os.Readlink when it unstages is the share.
func TestRig_Share(t *testing.T) {
	ctx, m := newRigKit(t)
	const remote = `\\files\data`
	twice(t, "stage", func() error {
		_, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.SMB{Remote: remote, Username: "csi", Password: "csi-Pa55"}})
		return err
	})
	if leads, err := os.Readlink(staging); err != nil || !strings.EqualFold(strings.TrimRight(leads, `\`), remote) {
		t.Errorf("the staging path leads to %q, %v, want %s", leads, err, remote)
	}
	write(t, "shared", staging, "file")
	wantFile(t, "shared", remote, "file")
	twice(t, "publish", func() error { return m.Publish(ctx, staging, target) })
	wantFile(t, "shared", target, "file")
	twice(t, "unpublish", func() error { return m.Unpublish(ctx, target) })
	twice(t, "unstage", func() error { return m.Unstage(ctx, mounter.UnstageRequest{Path: staging}) })
	wantGone(t, staging)
	wantFile(t, "shared", remote, "file")
}
