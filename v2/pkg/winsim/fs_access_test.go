package winsim_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/sddl"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestRootAccess: members of Users cannot create files in the root of a new volume, until its
// access list lets them. Label, cluster size and access list are part of the state and of the
// fingerprint.
func TestRootAccess(t *testing.T) {
	ctx := t.Context()
	model := storageModel()
	node := newNode(t, model)
	mustAll(t, node.Format(ctx, dataID, win.FormatOptions{ClusterSize: 64 << 10, Label: "data"}))
	file := dataVolume + "file"
	if err := node.WriteFileAsUser(file, "x"); winerr.CodeOf(err) != winerr.AccessDenied {
		t.Errorf("a user writes to the root: %v", err)
	}
	mustAll(t, node.Mkdir(dataVolume+"dir"), node.WriteFileAsUser(dataVolume+`dir\file`, "x"))
	print := func(n *winsim.Node) string {
		text, err := n.DiskFingerprint(2)
		mustAll(t, err)
		return text
	}
	seen := map[string]bool{print(node): true}
	if list, err := node.RootSecurity(ctx, dataID); err != nil || list != sddl.NewRoot {
		t.Errorf("a new volume has the access list %q, %v", list, err)
	}
	const access = "D:P(A;OICI;FA;;;SY)(A;OICI;0x1301bf;;;BU)"
	mustAll(t, node.SetRootSecurity(ctx, dataID, access))
	if list, err := node.RootSecurity(ctx, dataID); err != nil || list != access {
		t.Errorf("the access list is %q, %v", list, err)
	}
	seen[print(node)] = true
	mustAll(t, node.SetVolumeLabel(ctx, dataID, "other"))
	seen[print(node)] = true
	if len(seen) != 3 {
		t.Error("the fingerprint does not cover access list and label")
	}
	mustAll(t, node.WriteFileAsUser(file, "x"))
	if info, err := node.FileSystem(ctx, dataID); err != nil || info.Label != "other" {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestFormat_Options(t *testing.T) {
	ctx := t.Context()
	node := newNode(t, storageModel())
	long := "123456789 123456789 123456789 123"
	for name, c := range map[string]struct {
		options     win.FormatOptions
		code, older error
	}{
		"no power of two": {win.FormatOptions{ClusterSize: 3000}, winerr.StorageClusterSize, winerr.LegacyFormatClustersTooSmall},
		"too large":       {win.FormatOptions{ClusterSize: 4 << 20}, winerr.StorageClusterSize, winerr.LegacyFormatClustersTooSmall},
		"long label":      {win.FormatOptions{Label: long}, winerr.StorageInvalidParameter, winerr.LegacyFormatLabel},
	} {
		if err := node.Format(ctx, dataID, c.options); !bare(err, c.code) {
			t.Errorf("%s: %v, want %v", name, err, c.code)
		}
		if err := node.FormatLegacy(ctx, dataID, c.options); !bare(err, c.older) {
			t.Errorf("%s: %v, want %v", name, err, c.older)
		}
	}
	if err := node.SetVolumeLabel(ctx, dataID, long); !bare(err, winerr.InvalidName) {
		t.Errorf("a long label: %v", err)
	}
	if err := node.SetRootSecurity(ctx, dataID, "everyone"); !bare(err, winerr.InvalidParameter) {
		t.Errorf("no access list: %v", err)
	}
}
