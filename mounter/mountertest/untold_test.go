package mountertest_test

import (
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func inBothModes(t *testing.T, test func(k *kit)) {
	t.Helper()
	for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
		t.Run(mode.String(), func(t *testing.T) { test(newKit(t, mode, winsim.Default())) })
	}
}

// fail makes a call of the machine fail until the function that it returns is called.
func (k *kit) fail(call string) (heal func()) {
	k.t.Helper()
	injection, err := k.node.Inject(winsim.Fault{Call: call, Error: 1117}) // ERROR_IO_DEVICE
	k.must(err)
	return injection.Remove
}

// TestUnstage_Untold: a volume that is staged at two paths keeps its disk online when one of them
// goes. While Windows does not say where it is mounted, the disk is not taken offline under the pod
// at the other path.
func TestUnstage_Untold(t *testing.T) {
	inBothModes(t, func(k *kit) {
		const other = staging + "-other"
		k.must(k.stage())
		k.must(k.stage(func(r *mounter.StageRequest) { r.Path = other }))
		heal := k.fail("VolumePaths")
		err := k.unstage()
		if failure.ClassOf(err) != failure.Unavailable || !strings.Contains(err.Error(), "1117") {
			k.t.Errorf("got %v, want an error that says why the mounts are unknown", err)
		}
		if info, err := k.node.DiskInfo(1); err != nil || info.Offline {
			k.t.Fatalf("the disk is %+v, %v", info, err)
		}
		heal()
		k.must(k.unstage())
		if info, err := k.node.DiskInfo(1); err != nil || info.Offline {
			k.t.Fatalf("after a repetition the disk is %+v, %v", info, err)
		}
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: other, Offline: true}))
		if info, err := k.node.DiskInfo(1); err != nil || !info.Offline {
			k.t.Errorf("after the last one the disk is %+v, %v", info, err)
		}
	})
}

// TestFindDisk_Untold: a disk that does not report its serial number may be the one that is meant, so
// the other one is not taken for it. The published API, which lists only what answers, is not a way around.
func TestFindDisk_Untold(t *testing.T) {
	inBothModes(t, func(k *kit) {
		_, err := k.node.AttachDisk(winsim.Disk{Size: winsim.GiB, Serial: "WINSIM0001"})
		k.must(err)
		_, err = k.node.Inject(winsim.Fault{Call: "DeviceDescriptor", Object: `\\.\PhysicalDrive1`, Error: 1117})
		k.must(err)
		if number, err := k.FindDisk(k.ctx, mounter.Disk{Serial: "WINSIM0001"}); failure.ClassOf(err) != failure.Unavailable {
			k.t.Errorf("found disk %d, %v; disk 1 may have the same serial number", number, err)
		}
	})
}

// TestList_Untold: a list that lacks mounts is an error, because a caller would take them for gone.
func TestList_Untold(t *testing.T) {
	inBothModes(t, func(k *kit) {
		k.must(k.stage())
		defer k.fail("VolumePaths")()
		if points, err := k.List(); failure.ClassOf(err) != failure.Unavailable || len(points) > 0 {
			k.t.Errorf("got %v, %v", points, err)
		}
		if refs, err := k.GetMountRefs(staging); failure.ClassOf(err) != failure.Unavailable || len(refs) > 0 {
			k.t.Errorf("got %v, %v", refs, err)
		}
	})
}
