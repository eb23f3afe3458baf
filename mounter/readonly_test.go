package mounter_test

import (
	"testing"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// sharedDisk is a disk with data that several nodes have at one LUN.
func sharedDisk(change func(*winsim.Disk)) winsim.Disk {
	d := winsim.Disk{
		Number: 7, Size: winsim.GiB, Bus: winsim.BusSAS, SCSI: &winsim.SCSI{Port: 3, LUN: 4}, Layout: winsim.LayoutGPT,
		Partitions: []winsim.Partition{{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{Files: []winsim.File{{Path: `\file`, Content: "data"}}}}},
	}
	if change != nil {
		change(&d)
	}
	return d
}

// TestReadOnly_TwoNodes: two nodes have one disk and stage it read-only. Neither mounts NTFS for
// writing, from the arrival of the disk until after its end, and its next owner can write.
func TestReadOnly_TwoNodes(t *testing.T) {
	for name, c := range map[string]struct {
		policy winsim.SANPolicy
		change func(*winsim.Disk)
	}{
		"offline and read-only by the SAN policy": {policy: winsim.OfflineShared},
		"offline":                   {change: func(d *winsim.Disk) { d.Offline = true }},
		"online":                    {},
		"online and read-only":      {change: func(d *winsim.Disk) { d.ReadOnly = true }},
		"goes offline again":        {policy: winsim.OfflineShared, change: func(d *winsim.Disk) { d.OfflineAgain = 2 }},
		"protected by the platform": {change: func(d *winsim.Disk) { d.WriteProtected = true }},
	} {
		for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				for range 2 {
					readOnlyLife(t, mode, c.policy, sharedDisk(c.change))
				}
			})
		}
	}
}

func readOnlyLife(t *testing.T, mode mounter.Mode, policy winsim.SANPolicy, disk winsim.Disk) {
	t.Helper()
	model := blankNode()
	model.Storage.SANPolicy = policy
	k := newKit(t, mode, model)
	_, err := k.node.AttachDisk(disk)
	k.must(err)
	before, err := k.node.DiskFingerprint(disk.Number)
	k.must(err)
	unwritten := func(when string) winsim.DiskInfo {
		t.Helper()
		info, err := k.node.DiskInfo(disk.Number)
		k.must(err)
		if now, err := k.node.DiskFingerprint(disk.Number); err != nil || now != before || info.LogOpened != 0 {
			t.Fatalf("%s: NTFS mounted the disk for writing %d times, and its content differs: %t, %v", when, info.LogOpened, now != before, err)
		}
		return info
	}
	for range 2 { // a retry
		k.must(k.stage(func(r *mounter.StageRequest) { r.Disk, r.ReadOnly = number(disk.Number), true }))
		if info := unwritten("staged"); info.Offline || !info.ReadOnly {
			t.Errorf("staged, the disk is offline %t, read-only %t", info.Offline, info.ReadOnly)
		}
	}
	if text, err := k.node.ReadFile(staging + `\file`); text != "data" || err != nil {
		t.Errorf("a pod reads %q, %v", text, err)
	}
	if err := k.node.WriteFile(staging+`\file`, "text"); err == nil {
		t.Error("a pod can write")
	}
	k.node.Reboot()
	if info := unwritten("after a restart"); info.Offline || !info.ReadOnly {
		t.Errorf("after a restart the disk is offline %t, read-only %t", info.Offline, info.ReadOnly)
	}
	// A driver that was restarted has only the path.
	k = newKitOn(t, mode, k.node)
	for range 2 {
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}))
		if info := unwritten("unstaged"); info.ReadOnly != disk.WriteProtected {
			t.Errorf("unstaged, the disk is read-only: %t", info.ReadOnly)
		}
	}
	k.must(k.node.DetachDisk(disk.Number))
	next := sharedDisk(func(d *winsim.Disk) { d.Number = 8 })
	_, err = k.node.AttachDisk(next)
	k.must(err)
	if info, err := k.node.DiskInfo(8); err != nil || info.ReadOnly && !disk.WriteProtected {
		t.Errorf("the next disk at the LUN arrives read-only, %v", err)
	}
	k.must(k.stage(func(r *mounter.StageRequest) { r.Disk = number(8) }))
	k.must(k.node.WriteFile(staging+`\file`, "text"))
}
