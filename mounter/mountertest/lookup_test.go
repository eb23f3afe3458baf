package mountertest_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestLookup asks what node services ask between the verbs.
func TestLookup(t *testing.T) {
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			node, err := winsim.New(winsim.EBSNVMe())
			must(t, err)
			option := mountertest.Library(node)
			if mode == mounter.Daemon {
				option = mountertest.NewDaemon(t, node).Option()
			}
			m, err := mounter.New(t.Context(), option)
			must(t, err)
			defer m.Close()
			ctx := t.Context()
			exists := func(path string, want bool) {
				t.Helper()
				if got, err := m.Exists(ctx, path); got != want || err != nil {
					t.Errorf("Exists(%s) = %v, %v", path, got, err)
				}
			}

			number, err := m.FindDisk(ctx, mounter.Disk{SerialPrefix: "vol0123456789abcdef0"})
			if number != 1 || err != nil {
				t.Errorf("FindDisk = %d, %v", number, err)
			}
			if _, err := m.FindDisk(ctx, mounter.Disk{SerialPrefix: "vol999"}); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("FindDisk of a missing disk: %v", err)
			}
			must(t, node.GrowDisk(1, 20*winsim.GiB))
			if size, err := m.DiskBytes(ctx, 1); size != int64(20*winsim.GiB) || err != nil {
				t.Errorf("DiskBytes = %d, %v", size, err)
			}

			exists("/var/lib/kubelet/plugins/new", false)
			for range 2 {
				must(t, m.MakeDir(ctx, "/var/lib/kubelet/plugins/new/folder"))
			}
			exists(`c:\var\lib\kubelet\plugins\new\folder`, true)

			if at, err := m.StagedAt(ctx, `C:\var\lib\kubelet\plugins\new\folder`); !errors.Is(err, fs.ErrNotExist) || at.VolumeID != "" {
				t.Errorf("StagedAt a folder = %+v, %v", at, err)
			}
			staged, err := m.Stage(ctx, mounter.StageRequest{Path: staging, Source: mounter.Disk{Number: &number}})
			must(t, err)
			must(t, m.Publish(ctx, staging, target))
			for _, path := range []string{staging, target} {
				if at, err := m.StagedAt(ctx, path); at != staged || err != nil {
					t.Errorf("StagedAt(%s) = %+v, %v, want %+v", path, at, err, staged)
				}
			}
			must(t, node.DetachDisk(1))
			if at, err := m.StagedAt(ctx, staging); !errors.Is(err, fs.ErrNotExist) || at.VolumeID != "" {
				t.Errorf("StagedAt after the disk is gone = %+v, %v", at, err)
			}
			exists(staging, false)
		})
	}
}
