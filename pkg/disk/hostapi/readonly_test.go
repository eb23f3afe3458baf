package api_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func TestSetDiskReadOnly(t *testing.T) {
	for _, offline := range []bool{false, true} {
		disk := used["NTFS"]
		disk.Offline = offline
		node := newNode(t, withDisk(disk))
		h := bound(t.Context(), node)
		unchanged(t, node, added, func() {
			for _, readOnly := range []bool{false, true, true, false} {
				if err := h.SetDiskReadOnly(added, readOnly); err != nil {
					t.Fatal(err)
				}
				if got, err := h.GetDiskReadOnly(added); err != nil || got != readOnly {
					t.Errorf("read-only = %v, %v, want %v", got, err, readOnly)
				}
				if got, want := attributes(t, node, added), (win.DiskAttributes{Offline: offline, ReadOnly: readOnly}); got != want {
					t.Errorf("the disk is %+v, want %+v", got, want)
				}
			}
		})
		if got := node.Calls()["SetDiskAttributes"]; got != 2 {
			t.Errorf("the disk was changed %d times, want 2", got)
		}
	}
}

func TestSetDiskReadOnly_Refused(t *testing.T) {
	node := newNode(t, withDisk(winsim.Disk{WriteProtected: true}))
	h := bound(t.Context(), node)
	wantKind(t, "the system disk", h.SetDiskReadOnly(systemDisk, true), winerr.Denied)
	wantKind(t, "a disk that is not there", h.SetDiskReadOnly(missing, true), winerr.NotFound)
	wantKind(t, "a protected disk", h.SetDiskReadOnly(added, false), winerr.InUse)
	_, err := h.GetDiskReadOnly(missing)
	wantKind(t, "the state of a disk that is not there", err, winerr.NotFound)
	wantKind(t, "the system disk, which is writable already", h.SetDiskReadOnly(systemDisk, false), winerr.Denied)
	if attributes(t, node, systemDisk).ReadOnly {
		t.Error("the system disk is read-only")
	}
}
