package mountertest_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestUnstage_Copy: a repetition cannot tell a disk from a copy with the same keys. It must succeed,
// so that the pod can end, and must not touch either disk.
func TestUnstage_Copy(t *testing.T) {
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			k := newKit(t, mode, winsim.Default())
			keys := mounter.Disk{Serial: "WINSIM0001"}
			k.must(k.stage(func(r *mounter.StageRequest) { r.Source = keys }))
			copied, err := k.node.AttachDisk(winsim.Disk{Size: winsim.GiB, Serial: "WINSIM0001"})
			k.must(err)
			const other = staging + "-copy"
			k.must(k.stage(func(r *mounter.StageRequest) { r.Path, r.Source = other, number(copied) }))
			for range 2 {
				must(t, k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true, Source: keys}))
			}
			for number, want := range map[uint32]bool{1: true, copied: false} {
				if info, err := k.node.DiskInfo(number); err != nil || info.Offline != want {
					t.Errorf("disk %d is %+v, %v; offline should be %v", number, info, err, want)
				}
			}
		})
	}
}

// TestTaken: what is in the way is named with what a driver's user can do about it, not with methods
// of the API.
func TestTaken(t *testing.T) {
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) {
			k := newKit(t, mode, winsim.Default())
			const other = staging + "-other"
			k.must(k.stage())
			k.must(k.stage(func(r *mounter.StageRequest) { r.Path, r.Source = other, number(2) }))
			k.must(k.Publish(k.ctx, other, target))
			for says, err := range map[string]error{
				"unpublish that volume first": k.Publish(k.ctx, staging, target),
				"unstage that volume first":   k.stageShare(),
			} {
				if failure.ClassOf(err) != failure.Exists || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "Rmdir") {
					t.Errorf("%v, want %q", err, says)
				}
			}
		})
	}
}
