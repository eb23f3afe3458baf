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

// TestUnstage_Replaced: a volume that is gone is unstaged although another pod's disk has its keys now, as disks without a
// serial number have those of their place. That disk stays as it is.
func TestUnstage_Replaced(t *testing.T) {
	const slot = `\\?\scsi#disk&ven_msft&prod_virtual_disk#5&17e2bcbf&0&000003#{53f56307-b6bf-11d0-94f2-00a0c91efb8b}`
	eachMode(t, func() winsim.Model {
		model := attachedNode()
		model.Disks[1].Path, model.Disks[1].Serial, model.Disks[1].Page83 = slot, "", nil
		return model
	}, func(k *kit) {
		stage := func(path string) error {
			return second(k.Stage(k.ctx, mounter.StageRequest{Path: path, Source: mounter.Disk{Path: slot}}))
		}
		k.must(stage(staging), k.node.DetachDisk(1))
		_, err := k.node.AttachDisk(winsim.Disk{Size: 5 * winsim.GiB, Path: slot, SCSI: &winsim.SCSI{Port: 1}})
		k.must(err, stage(staging2), k.node.WriteFile(staging2+`\file`, "text"))
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
		if got, err := k.node.ReadFile(staging2 + `\file`); got != "text" || err != nil || k.node.Exists(staging) {
			k.t.Errorf("the other pod reads %q, %v", got, err)
		}
	})
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
