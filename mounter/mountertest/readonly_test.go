package mountertest_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
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
		storage winsim.Storage
		change  func(*winsim.Disk)
	}{
		"offline and read-only by the SAN policy": {storage: winsim.Storage{SANPolicy: winsim.OfflineShared}},
		"offline":              {change: func(d *winsim.Disk) { d.Offline = true }},
		"online":               {},
		"online and read-only": {change: func(d *winsim.Disk) { d.ReadOnly = true }},
		"goes offline again":   {storage: winsim.Storage{SANPolicy: winsim.OfflineShared, OfflineAgain: 2}},
		"MBR, whose volume has no name in the table": {change: func(d *winsim.Disk) { d.Layout, d.Partitions = winsim.LayoutMBR, d.Partitions[1:] }},
		"protected by the platform":                  {change: func(d *winsim.Disk) { d.WriteProtected = true }},
	} {
		for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				if mode == mounter.Daemon && runtime.GOOS == "windows" {
					t.Skip("pipes have the same names for all nodes")
				}
				for range 2 {
					readOnlyLife(t, mode, c.storage, sharedDisk(c.change))
				}
			})
		}
	}
}

func readOnlyLife(t *testing.T, mode mounter.Mode, storage winsim.Storage, disk winsim.Disk) {
	t.Helper()
	model := blankNode()
	model.Storage.SANPolicy, model.Storage.OfflineAgain = storage.SANPolicy, storage.OfflineAgain
	k := newKit(t, mode, model)
	_, err := k.node.AttachDisk(disk)
	k.must(err)
	before, err := k.node.DiskFingerprint(disk.Number)
	k.must(err)
	unwritten := func(when string) winsim.Disk {
		t.Helper()
		info, err := k.node.DiskInfo(disk.Number)
		k.must(err)
		if now, err := k.node.DiskFingerprint(disk.Number); err != nil || now != before || info.LogOpened != 0 {
			t.Fatalf("%s: NTFS mounted the disk for writing %d times, and its content differs: %t, %v", when, info.LogOpened, now != before, err)
		}
		return info
	}
	for range 2 { // a retry
		k.must(k.stage(func(r *mounter.StageRequest) { r.Source, r.ReadOnly = number(disk.Number), true }))
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
	k = k.again()
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
	k.must(k.stage(func(r *mounter.StageRequest) { r.Source = number(8) }))
	k.must(k.node.WriteFile(staging+`\file`, "text"))
}

// TestReadOnly_Refused: a disk that cannot be staged read-only stays writable, and is not taken from
// under another folder.
func TestReadOnly_Refused(t *testing.T) {
	for name, c := range map[string]struct {
		model   func() winsim.Model
		prepare func(*kit) error
		text    string
	}{
		"blank":      {blankNode, nothing, "no file system"},
		"written to": {attachedNode, func(k *kit) error { return k.stage(func(r *mounter.StageRequest) { r.Path = staging + "2" }) }, staging + "2"},
		"several volumes": {func() winsim.Model {
			model := attachedNode()
			model.Disks[1].Partitions = append(model.Disks[1].Partitions[:1], winsim.Partition{Size: winsim.GiB, Volume: &winsim.Volume{}}, winsim.Partition{Volume: &winsim.Volume{}})
			return model
		}, nothing, "2 volumes"},
	} {
		for _, mode := range []mounter.Mode{mounter.Library, mounter.Daemon} {
			t.Run(name+"/"+mode.String(), func(t *testing.T) {
				k := newKit(t, mode, c.model())
				k.must(c.prepare(k))
				if err := stageReadOnly(k); failure.ClassOf(err) != failure.InUse || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%v, want one that says %s", err, c.text)
				}
				if info, err := k.node.DiskInfo(1); err != nil || info.ReadOnly {
					t.Errorf("the disk is read-only, %v", err)
				}
			})
		}
	}
}

// TestReadOnly_StaysMounted: a disk keeps its state while it is mounted at another folder.
func TestReadOnly_StaysMounted(t *testing.T) {
	k := newKit(t, mounter.Library, attachedNode())
	k.must(stageReadOnly(k))
	k.must(k.stage(func(r *mounter.StageRequest) { r.Path, r.ReadOnly = staging+"2", true }))
	for _, path := range []string{staging, staging + "2"} {
		if info, err := k.node.DiskInfo(1); err != nil || info.Offline || !info.ReadOnly {
			t.Errorf("before %s is unstaged, the disk is offline %t, read-only %t, %v", path, info.Offline, info.ReadOnly, err)
		}
		k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: path}))
	}
	if info, err := k.node.DiskInfo(1); err != nil || info.ReadOnly {
		t.Errorf("in the end the disk is read-only, %v", err)
	}
}

// TestReadOnly_Kept: what is staged read-only is not staged for writing, also after a restart of the driver, and a disk that
// the platform protects is not either.
func TestReadOnly_Kept(t *testing.T) {
	eachMode(t, attachedNode, func(k *kit) {
		k.must(stageReadOnly(k), k.Publish(k.ctx, staging, target))
		for range 2 {
			k.wantClass("stage for writing", k.stage(), failure.Exists, "read-only")
			if info, err := k.node.DiskInfo(1); err != nil || !info.ReadOnly {
				k.t.Errorf("the disk is writable, %v", err)
			}
			k.wantCondition(false, "well")
			k.restart()
		}
		k.must(k.Unpublish(k.ctx, target), k.unstage(), k.stage())
	})
	eachMode(t, func() winsim.Model {
		model := attachedNode()
		model.Disks[1].WriteProtected, model.Disks[1].Offline = true, true
		return model
	}, func(k *kit) {
		for range 2 {
			k.wantClass("stage for writing", k.stage(), failure.InUse, "set ReadOnly if reading suffices")
			if info, err := k.node.DiskInfo(1); err != nil || !info.Offline || k.node.Exists(staging+`\file`) {
				k.t.Errorf("the disk is online, %v", err)
			}
		}
		k.must(stageReadOnly(k))
		k.wantCondition(false, "well")
	})
}

// TestReadOnly_StageAgain: a pod that reads a disk keeps it while Stage for it fails, and none at another path writes to it.
func TestReadOnly_StageAgain(t *testing.T) {
	eachMode(t, attachedNode, func(k *kit) {
		k.must(k.stage(), k.node.WriteFile(staging+`\file`, "text"), k.unstage(), stageReadOnly(k), k.Publish(k.ctx, staging, target))
		locked, err := k.node.Inject(winsim.Fault{Call: "FileSystem", Error: 0x80310000}) // FVE_E_LOCKED_VOLUME
		k.must(err)
		k.wantClass("a locked volume", stageReadOnly(k), failure.InUse)
		locked.Remove()
		if got, err := k.node.ReadFile(target + `\file`); got != "text" || err != nil {
			k.t.Errorf("the pod reads %q, %v", got, err)
		}
		k.wantClass("for writing elsewhere", k.stage(func(r *mounter.StageRequest) { r.Path = staging2 }), failure.InUse, staging)
		if info, err := k.node.DiskInfo(1); err != nil || !info.ReadOnly {
			k.t.Errorf("the disk is writable, %v", err)
		}
	})
}

// TestCondition_Hangs: a disk that does not answer, or the server of a share, is a condition within 5 seconds.
func TestCondition_Hangs(t *testing.T) {
	for name, hangs := range map[string]func(*kit){
		"disk": func(k *kit) { k.must(k.stage(), k.node.HangDisk(1)) },
		"share": func(k *kit) {
			k.must(k.stageShare(), second(k.node.Inject(winsim.Fault{Object: csiShare.Remote + "*", Delay: time.Hour})))
		},
		"share that cannot be measured": func(k *kit) {
			k.must(k.stageShare(), second(k.node.Inject(winsim.Fault{Call: "PathSpace", Object: staging, Delay: time.Hour})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbles(t, attachedNode, func(k *kit) {
				hangs(k)
				begin := time.Now()
				condition, err := k.Condition(k.ctx, staging)
				if took := time.Since(begin); err != nil || condition.Reason != mounter.ReasonNoAnswer || !condition.Inaccessible || took > 5*time.Second {
					k.t.Errorf("%+v, %v after %v", condition, err, took)
				}
			})
		})
	}
}
