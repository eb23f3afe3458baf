package winsim_test

import (
	"reflect"
	"testing"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestDamageVolume: what each kind of damage shows.
func TestDamageVolume(t *testing.T) {
	for corruption, want := range map[winsim.Corruption]win.VolumeHealth{
		winsim.Sound:     {Operational: []uint16{2}},
		winsim.Suspected: {Status: win.DiskWarning, Operational: []uint16{win.ScanNeeded}},
		winsim.Noted:     {Status: win.DiskWarning, Operational: []uint16{win.SpotFixNeeded}},
		winsim.Severe:    {Status: win.DiskWarning, Operational: []uint16{win.FullRepairNeeded}},
	} {
		for _, dirty := range []bool{false, true} {
			node := newNode(t, storageModel())
			mustAll(t, node.DamageVolume(dataVolume, winsim.Damage{Dirty: dirty, Corruption: corruption}))
			if health, err := node.VolumeHealth(t.Context(), dataID); err != nil || len(health) != 1 || !reflect.DeepEqual(health[dataID], want) {
				t.Errorf("%q: %v, %v, want %v", corruption, health, err, want)
			}
			if got, err := node.VolumeDirty(t.Context(), dataID); err != nil || got != dirty {
				t.Errorf("%q: dirty %v, %v", corruption, got, err)
			}
		}
	}
}
