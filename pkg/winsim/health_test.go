package winsim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestRepairVolume: what each kind of damage shows before, and after a scan, a spot fix and an offline repair.
func TestRepairVolume(t *testing.T) {
	for corruption, want := range map[winsim.Corruption][4]win.VolumeHealth{
		winsim.Sound:     {0, 0, 0, 0},
		winsim.Unnoticed: {0, win.SpotFixNeeded, 0, 0},
		winsim.Suspected: {win.ScanNeeded, win.SpotFixNeeded, 0, 0},
		winsim.Noted:     {win.SpotFixNeeded, win.SpotFixNeeded, 0, 0},
		winsim.Severe:    {win.FullRepairNeeded, win.FullRepairNeeded, win.FullRepairNeeded, 0},
		winsim.Lost:      {win.FullRepairNeeded, win.FullRepairNeeded, win.FullRepairNeeded, win.FullRepairNeeded},
	} {
		node := newProvenNode(t, storageModel())
		mustAll(t, node.DamageVolume(dataVolume, winsim.Damage{Dirty: true, Corruption: corruption, Files: []string{"file"}}))
		if _, err := node.ReadFile(dataVolume + "file"); !errors.Is(err, winerr.FileCorrupt) {
			t.Errorf("%s: a damaged file reads %v", corruption, err)
		}
		for i, how := range []win.Repair{"", win.RepairScan, win.RepairSpotFix, win.RepairOffline} {
			if how != "" {
				if err := node.RepairVolume(t.Context(), dataID, how); err != nil && !bare(err, winerr.StorageRepairFailed) {
					t.Errorf("%s, %s: %v", corruption, how, err)
				}
			}
			if health, err := node.VolumeHealth(t.Context(), dataID); err != nil || len(health) != 1 || health[dataID] != want[i] {
				t.Errorf("%s after %q: %v, %v, want %d", corruption, how, health, err, want[i])
			}
		}
		if dirty, err := node.VolumeDirty(t.Context(), dataID); err != nil || dirty != (corruption == winsim.Lost) {
			t.Errorf("%s: dirty %v, %v in the end", corruption, dirty, err)
		}
	}
}

// TestRepairVolume_GoesOn: a scan ends without its caller, also when the process of the node was restarted meanwhile.
// A repair takes the volume away as long as it runs, and needs it for itself.
func TestRepairVolume_GoesOn(t *testing.T) {
	model := storageModel()
	model.Storage.ScanTime, model.Storage.RepairTime = time.Minute, time.Second
	node := newProvenNode(t, model)
	mustAll(t, node.DamageVolume(dataVolume, winsim.Damage{Corruption: winsim.Unnoticed}))
	gone, cancel := context.WithCancel(t.Context())
	inject(t, node, winsim.Fault{Call: "RepairVolume", Times: 1, Do: func(*winsim.Node) { cancel() }})
	if err := node.RepairVolume(gone, dataID, win.RepairScan); !errors.Is(err, context.Canceled) {
		t.Fatalf("a caller who leaves: %v", err)
	}
	restarted, err := node.Model()
	mustAll(t, err)
	node, err = winsim.New(restarted)
	mustAll(t, err)
	if err := node.RepairVolume(t.Context(), dataID, win.RepairScan); !bare(err, winerr.StorageScanRunning) {
		t.Errorf("a second scan: %v", err)
	}
	mustAll(t, node.Sleep(t.Context(), time.Minute))
	if health, err := node.VolumeHealth(t.Context(), ""); err != nil || health[dataID] != win.SpotFixNeeded {
		t.Errorf("after the scan: %v, %v", health, err)
	}
	release, err := node.Hold(dataVolume + "file")
	mustAll(t, err)
	if err := node.RepairVolume(t.Context(), dataID, win.RepairSpotFix); !bare(err, winerr.StorageCannotOpen) {
		t.Errorf("while a file is open: %v", err)
	}
	release()
	mustAll(t, node.RepairVolume(t.Context(), dataID, win.RepairSpotFix))
}
