package policy_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/volume"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// newVolume is a volume group on a node with a data volume, limited to kubelet's directory.
func newVolume(t *testing.T) (*winsim.Node, volume.Interface) {
	t.Helper()
	model := winsim.Default()
	model.Disks[1].Layout = winsim.LayoutGPT
	model.Disks[1].Partitions = []winsim.Partition{{Volume: &winsim.Volume{ID: dataVolume}}}
	node, err := winsim.New(model)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := volume.New(node.Volume())
	if err != nil {
		t.Fatal(err)
	}
	return node, newPolicy(t, `C:\var\lib\kubelet`).Volume(inner)
}

const dataVolume = `\\?\Volume{11111111-2222-3333-4444-555555555555}\`

// pathCalls are the calls of the volume group that take a path.
func pathCalls(t *testing.T, v volume.Interface, path string) map[string]error {
	t.Helper()
	results := map[string]error{}
	_, results["MountVolume"] = v.MountVolume(t.Context(), &volume.MountVolumeRequest{VolumeID: dataVolume, TargetPath: path})
	_, results["GetVolumeIDFromTargetPath"] = v.GetVolumeIDFromTargetPath(t.Context(), &volume.GetVolumeIDFromTargetPathRequest{TargetPath: path})
	_, results["GetClosestVolumeIDFromTargetPath"] = v.GetClosestVolumeIDFromTargetPath(t.Context(), &volume.GetClosestVolumeIDFromTargetPathRequest{TargetPath: path})
	_, results["UnmountVolume"] = v.UnmountVolume(t.Context(), &volume.UnmountVolumeRequest{VolumeID: dataVolume, TargetPath: path})
	return results
}

func TestVolume_GuardsEveryPath(t *testing.T) {
	node, guarded := newVolume(t)
	if err := node.Mkdir(`C:\empty`); err != nil {
		t.Fatal(err)
	}
	before := node.Tree(`C:\`)
	node.ResetCalls()
	for _, path := range []string{`C:\empty`, `C:\new`, `C:\`, `C:\var\lib`, `C:\var\lib\kubelet-evil`, `D:\`} {
		for name, err := range pathCalls(t, guarded, path) {
			if !errors.Is(err, winerr.Denied) || !strings.Contains(err.Error(), `C:\var\lib\kubelet`) {
				t.Errorf("%s at %s: %v, want it denied with the allowed directories named", name, path, err)
			}
		}
	}
	for _, path := range []string{``, `C:\var\lib\kubelet\..\..\x`, `\\?\C:\var\lib\kubelet\x`} {
		for name, err := range pathCalls(t, guarded, path) {
			if !errors.Is(err, winerr.Invalid) {
				t.Errorf("%s at %s: %v, want it refused as invalid", name, path, err)
			}
		}
	}
	if after := node.Tree(`C:\`); after != before {
		t.Errorf("the node changed:\n%s", after)
	}
	if calls := node.Calls(); len(calls) != 0 {
		t.Errorf("the node was asked: %v", calls)
	}

	// A working directory can be asked about, but not covered by a volume.
	for name, err := range pathCalls(t, guarded, `C:\var\lib\kubelet`) {
		denied := name == "MountVolume" || name == "UnmountVolume"
		if errors.Is(err, winerr.Denied) != denied {
			t.Errorf("%s at the working directory: %v", name, err)
		}
	}
}

func TestVolume_LetsOthersPass(t *testing.T) {
	_, guarded := newVolume(t)
	for name, err := range pathCalls(t, guarded, `C:\var\lib\kubelet\pods\x`) {
		if err != nil {
			t.Errorf("%s inside: %v", name, err)
		}
	}
	if got, want := reflect.TypeFor[volume.Interface]().NumMethod(), 11; got != want {
		t.Errorf("the group has %d methods, was %d: does the new one take a path?", got, want)
	}
	if _, err := guarded.GetVolumeStats(t.Context(), &volume.GetVolumeStatsRequest{VolumeID: dataVolume}); err != nil {
		t.Errorf("GetVolumeStats: %v", err)
	}
	if response, err := guarded.ListVolumesOnDisk(t.Context(), &volume.ListVolumesOnDiskRequest{DiskNumber: 1}); err != nil || len(response.VolumeIDs) != 1 {
		t.Errorf("ListVolumesOnDisk: %v, %v", response, err)
	}
}
