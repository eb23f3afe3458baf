package api_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

func mounted(t *testing.T) (*winsim.Node, volumeapi.HostAPI) {
	t.Helper()
	node := newNode(t, twoVolumes())
	must(t, node.MountFolder(target, id))
	return node, volumeapi.NewOn(node)
}

// wantEmptyFolder checks that an unmount kept the folder, and nothing but the folder.
func wantEmptyFolder(t *testing.T, node *winsim.Node) {
	t.Helper()
	if got, want := node.Tree(target), target+"\n"; got != want {
		t.Errorf("after the unmount there is %q, want %q", got, want)
	}
}

func TestUnmountVolume_NotMounted(t *testing.T) {
	for name, prepare := range map[string]func(*winsim.Node) error{
		"nothing there":       func(*winsim.Node) error { return nil },
		"no parent":           func(n *winsim.Node) error { return n.RemoveAll(pods) },
		"an ordinary folder":  func(n *winsim.Node) error { return n.Mkdir(target) },
		"a folder with files": func(n *winsim.Node) error { return n.WriteFile(target+`\x`, "data") },
		"a file":              func(n *winsim.Node) error { return n.WriteFile(target, "data") },
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(t, formatted())
			must(t, prepare(node))
			before := node.Tree(`C:\`)
			must(t, volumeapi.NewOn(node).UnmountVolume(id, target))
			if after := node.Tree(`C:\`); after != before {
				t.Errorf("something changed:\n%s", after)
			}
		})
	}
}

func TestUnmountVolume_SomethingElse(t *testing.T) {
	for name, prepare := range map[string]func(*winsim.Node) error{
		"another volume": func(n *winsim.Node) error { return n.MountFolder(target, volumeID(2)) },
		"a junction":     func(n *winsim.Node) error { return n.Junction(target, pods) },
		"a link":         func(n *winsim.Node) error { return n.Symlink(target, pods) },
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, twoVolumes())
			must(t, prepare(node))
			before := node.Tree(`C:\`)
			wantKind(t, "UnmountVolume", volumeapi.NewOn(node).UnmountVolume(id, target), winerr.InUse, target)
			if after := node.Tree(`C:\`); after != before {
				t.Errorf("something changed:\n%s", after)
			}
		})
	}
	node := nodeWith(t, formatted())
	wantKind(t, "a drive", volumeapi.NewOn(node).UnmountVolume(winsim.SystemVolume, `C:\`), winerr.Invalid, `C:\`)
	wantCalls(t, node, "DeleteMountPoint", 0)
}

func TestUnmountVolume_VolumeInTrouble(t *testing.T) {
	for name, trouble := range map[string]func(*winsim.Node) error{
		"gone":     func(n *winsim.Node) error { return n.SetVolumeState(id, winsim.Gone) },
		"raw":      func(n *winsim.Node) error { return n.SetVolumeState(id, winsim.Raw) },
		"locked":   func(n *winsim.Node) error { return n.SetVolumeState(id, winsim.Locked) },
		"detached": func(n *winsim.Node) error { return n.DetachDisk(firstDisk) },
	} {
		t.Run(name, func(t *testing.T) {
			node, host := mounted(t)
			must(t, trouble(node))
			for range 2 {
				must(t, host.UnmountVolume(id, target))
				wantEmptyFolder(t, node)
			}
		})
	}
}

// TestUnmountVolume_DyingDisk: a pod does not wait for ever for a disk that cannot be written to. The
// first failed flush keeps the mount, because it may pass; the second one in a row does not.
func TestUnmountVolume_DyingDisk(t *testing.T) {
	for _, code := range []winerr.Code{winerr.IODevice, winerr.NotReady, winerr.SemTimeout, winerr.GenFailure, winerr.FileInvalid, winerr.FileCorrupt, winerr.DeviceNotConnected, winerr.WriteProtect, 23, 29, 30, 55, 433, 483, 1393, 1617} {
		node := newNode(t, twoVolumes())
		must(t, node.MountFolder(target, id))
		var losses []string
		host := volumeapi.NewOn(node, volumeapi.OnLoss(func(text string) { losses = append(losses, text) }))
		flushFails := winsim.Fault{Call: "FlushVolume", Error: uint32(code)}
		for range 2 { // a success in between clears the count
			fault := inject(t, node, flushFails)
			err := host.UnmountVolume(id, target)
			if wantMounted(t, host, target, id); err == nil || !strings.Contains(err.Error(), "stays mounted") {
				t.Errorf("%v: the first failed flush: %v", code, err)
			}
			fault.Remove()
			must(t, host.WriteVolumeCache(id))
		}
		inject(t, node, flushFails)
		// Only the flushes of UnmountVolume count.
		if err := host.WriteVolumeCache(id); winerr.CodeOf(err) != code || !strings.Contains(err.Error(), "may be lost") && !errors.Is(code, winerr.NotFound) {
			t.Errorf("WriteVolumeCache: %v", err)
		}
		if err := host.UnmountVolume(id, target); err == nil || len(losses) > 0 {
			t.Errorf("%v: unmounted at the first failure, %q", code, losses)
		}
		must(t, host.UnmountVolume(id, target))
		wantEmptyFolder(t, node)
		if len(losses) != 1 || !strings.Contains(losses[0], id) || !strings.Contains(losses[0], target) || !strings.Contains(losses[0], code.Error()) {
			t.Errorf("%v: it says %q", code, losses)
		}
		must(t, host.MountVolume(id, target))
		if err := host.UnmountVolume(id, target); err == nil {
			t.Errorf("%v: the count of an earlier mount is remembered", code)
		}
	}
	// A retry is of the same folder, and soon.
	node, host := mounted(t)
	must(t, host.MountVolume(id, target+"2"))
	inject(t, node, winsim.Fault{Call: "FlushVolume", Error: uint32(winerr.SemTimeout)})
	for _, path := range []string{target, target + "2"} {
		if err := host.UnmountVolume(id, path); err == nil {
			t.Errorf("%s: unmounted, but only another folder was tried before", path)
		}
	}
	must(t, host.UnmountVolume(id, target)) // the other folder has not taken its turn
	must(t, host.MountVolume(id, target))
	if err := host.UnmountVolume(id, target); err == nil {
		t.Error("the count of an earlier mount is remembered")
	}
	must(t, node.Sleep(t.Context(), time.Hour))
	node.StepClock(-time.Hour)
	if err := host.UnmountVolume(id, target); err == nil {
		t.Error("unmounted for a failure of an hour ago")
	}
	node.StepClock(time.Hour)
	must(t, host.UnmountVolume(id, target))
}

// TestUnmountVolume_OtherFailures: other failures may pass, so they count as a loss only when they have lasted for six
// minutes. A volume that a repair has locked waits.
func TestUnmountVolume_OtherFailures(t *testing.T) {
	for code, lost := range map[winerr.Code]bool{winerr.DiskFull: true, 50: true, 59: true, 170: true, 995: true, 1450: true, winerr.AccessDenied: false} {
		node, _ := mounted(t)
		losses := 0
		host := volumeapi.NewOn(node, volumeapi.OnLoss(func(string) { losses++ }))
		flushFails := winsim.Fault{Call: "FlushVolume", Error: uint32(code)}
		fault := inject(t, node, flushFails)
		for minute := range 14 {
			err := host.UnmountVolume(id, target)
			if minute == 4 { // a success in between begins the time again
				fault.Remove()
				must(t, host.WriteVolumeCache(id))
				fault = inject(t, node, flushFails)
			}
			if accepted := lost && minute >= 11; (err == nil) != accepted || accepted && losses != 1 {
				t.Errorf("%v: after %d minutes: %v, %d losses", code, minute, err, losses)
			}
			must(t, node.Sleep(t.Context(), time.Minute))
		}
	}
}

// TestUnmountVolume_Silent: what a disk that does not answer has not written counts as lost only after six minutes in which
// it has answered nothing. Until then the volume stays mounted.
func TestUnmountVolume_Silent(t *testing.T) {
	for name, c := range map[string]struct {
		faults  []winsim.Fault // beside which the disk answers
		hangs   bool
		answers time.Duration // after which the disk answers for a moment
		rescans time.Duration // after which another driver lets Windows look for disks
		lost    time.Duration // after which the loss is accepted; 0 for never
	}{
		"hangs": {hangs: true, lost: 6 * time.Minute},
		// Because of the fault, which is never met, no call passes by the bounds.
		"rescan":       {faults: []winsim.Fault{{Call: "SANPolicy", Delay: time.Hour}}, hangs: true, rescans: 5 * time.Minute, lost: 6 * time.Minute},
		"answers once": {hangs: true, answers: 5 * time.Minute, lost: 11 * time.Minute},
		"only flushes": {faults: []winsim.Fault{{Call: "FlushVolume", Times: 1, Delay: 30 * time.Minute}}},
		"slow":         {faults: []winsim.Fault{{Call: "FlushVolume", Times: 1, Delay: 40 * time.Second}, {Call: "ReadDevice", Delay: 6 * time.Second}}},
		"recovers":     {faults: []winsim.Fault{{Call: "FlushVolume", Times: 1, Delay: 5 * time.Minute}, {Call: "ReadDevice", Times: 1, Delay: 5 * time.Minute}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node, _ := mounted(t)
				losses := 0
				host := volumeapi.NewOn(node, volumeapi.OnLoss(func(string) { losses++ }))
				for _, fault := range c.faults {
					inject(t, node, fault)
				}
				if c.hangs {
					must(t, node.HangDisk(firstDisk))
				}
				begin := time.Now()
				err := host.UnmountVolume(id, target)
				for err != nil {
					if !strings.Contains(err.Error(), "stays mounted") {
						t.Fatalf("after %v: %v", time.Since(begin), err)
					}
					if c.answers > 0 && time.Since(begin) > c.answers {
						c.answers = 0
						must(t, node.HealDisk(firstDisk))
						synctest.Wait()
						must(t, node.HangDisk(firstDisk))
					}
					time.Sleep(10 * time.Second)
					if c.rescans > 0 && time.Since(begin) > c.rescans {
						must(t, node.Disk().Rescan())
					}
					err = host.UnmountVolume(id, target)
				}
				took := time.Since(begin)
				if lost := c.lost > 0; lost != (losses > 0) || lost && (took < c.lost || took > c.lost+time.Minute) {
					t.Errorf("unmounted after %v with %d losses, want a loss after %v", took, losses, c.lost)
				}
				wantEmptyFolder(t, node)
			})
		})
	}
}

// TestUnmountVolume_TornOff: a volume whose disk is torn off while a flush is stuck is gone.
func TestUnmountVolume_TornOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := mounted(t)
		inject(t, node, winsim.Fault{Call: "FlushVolume", Times: 1, Delay: time.Hour})
		must(t, node.HangDisk(firstDisk))
		if err := host.UnmountVolume(id, target); !errors.Is(err, winerr.Unavailable) {
			t.Fatalf("while it hangs: %v", err)
		}
		must(t, node.DetachDisk(firstDisk))
		must(t, host.UnmountVolume(id, target))
		wantEmptyFolder(t, node)
	})
}

// TestUnmountVolume_ComesBack: a flush that Windows has not given back does not keep the volume of a disk that was attached
// again from being flushed and unmounted.
func TestUnmountVolume_ComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := mounted(t)
		inject(t, node, winsim.Fault{Call: "FlushVolume", Times: 1, Delay: 1000 * time.Hour})
		must(t, node.HangDisk(firstDisk))
		if err := host.UnmountVolume(id, target); !errors.Is(err, winerr.Unavailable) {
			t.Fatalf("while it hangs: %v", err)
		}
		must(t, node.DetachDisk(firstDisk))
		_, err := node.ReattachDisk(firstDisk)
		must(t, err)
		must(t, node.Sleep(t.Context(), time.Minute))
		must(t, node.Disk().SetDiskState(firstDisk, true))
		must(t, host.WriteVolumeCache(id))
		must(t, host.UnmountVolume(id, target))
		wantEmptyFolder(t, node)
	})
}

// TestFlushToUnmount_Old: a loss that was accepted for one unmount does not count for a later mount.
func TestFlushToUnmount_Old(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node, host := mounted(t)
		must(t, node.HangDisk(firstDisk))
		flush := func() (string, error) { return host.(volumeapi.Extended).FlushToUnmount(id, target) }
		loss, err := flush()
		for loss == "" {
			if err == nil {
				t.Fatal("the flush of a disk that hangs succeeds")
			}
			time.Sleep(time.Minute)
			loss, err = flush()
		}
		must(t, err)
		must(t, node.HealDisk(firstDisk))
		synctest.Wait()
		must(t, host.MountVolume(id, target))
		must(t, node.HangDisk(firstDisk))
		if err := host.UnmountVolume(id, target); !errors.Is(err, winerr.Unavailable) {
			t.Errorf("the first failure of another mount: %v", err)
		}
	})
}

// TestFlushToUnmount: a caller that takes the disk offline before it unmounts learns of a loss, which is reported once,
// when the volume goes. After a flush, the volume may be gone.
func TestFlushToUnmount(t *testing.T) {
	for _, offline := range []bool{false, true} {
		node, _ := mounted(t)
		var losses []string
		host := volumeapi.NewOn(node, volumeapi.OnLoss(func(text string) { losses = append(losses, text) }))
		flush := func() (string, error) { return host.(volumeapi.Extended).FlushToUnmount(id, target) }
		if loss, err := host.(volumeapi.Extended).FlushToUnmount(volumeID(2), target); loss != "" || err == nil {
			t.Errorf("another volume: %q, %v", loss, err)
		}
		fault := inject(t, node, winsim.Fault{Call: "FlushVolume", Error: uint32(winerr.IODevice)})
		if loss, err := flush(); loss != "" || err == nil || !strings.Contains(err.Error(), "stays mounted") {
			t.Errorf("the first failed flush: %q, %v", loss, err)
		}
		if loss, err := flush(); !strings.Contains(loss, "1117") || err != nil || len(losses) > 0 {
			t.Errorf("the second one: %q, %v, %q", loss, err, losses)
		}
		wantMounted(t, host, target, id)
		if offline {
			must(t, node.SetDiskAttributes(t.Context(), win.PhysicalDrive(1), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}))
		}
		must(t, host.UnmountVolume(id, target))
		if wantEmptyFolder(t, node); len(losses) != 1 || !strings.Contains(losses[0], target) {
			t.Errorf("it says %q", losses)
		}
		fault.Remove()
	}
	node, host := mounted(t)
	if loss, err := host.(volumeapi.Extended).FlushToUnmount(id, target); loss != "" || err != nil {
		t.Errorf("a healthy disk: %q, %v", loss, err)
	}
	inject(t, node, winsim.Fault{Call: "FlushVolume", Error: uint32(winerr.IODevice)})
	if err := host.UnmountVolume(id, target); err == nil {
		t.Error("a flush that succeeded counts as a failure")
	}
}

// TestUnmountVolume_MountManagerRefuses takes away the way Windows means one to go.
func TestUnmountVolume_MountManagerRefuses(t *testing.T) {
	for _, code := range []winerr.Code{winerr.FileNotFound, winerr.InvalidParameter, winerr.NotReady, winerr.NotAReparsePoint, winerr.InvalidFunction} {
		node, host := mounted(t)
		inject(t, node, winsim.Fault{Call: "DeleteMountPoint", Error: uint32(code)})
		must(t, host.UnmountVolume(id, target))
		wantEmptyFolder(t, node)
	}
	for _, c := range []struct {
		code winerr.Code
		kind winerr.Kind
	}{{winerr.AccessDenied, winerr.Denied}, {winerr.SharingViolation, winerr.Busy}} {
		node, host := mounted(t)
		inject(t, node, winsim.Fault{Call: "DeleteMountPoint", Error: uint32(c.code)})
		wantKind(t, "UnmountVolume", host.UnmountVolume(id, target), c.kind, target)
		wantMounted(t, host, target, id)
	}
}

// TestUnmountVolume_Races lets another process unmount, and mount something else.
func TestUnmountVolume_Races(t *testing.T) {
	node, host := mounted(t)
	inject(t, node, winsim.Fault{Call: "DeleteMountPoint", Times: 1, Error: uint32(winerr.InvalidParameter), Do: func(n *winsim.Node) {
		must(t, errors.Join(n.RemoveAll(target), n.MountFolder(target, volumeID(2))))
	}})
	must(t, host.UnmountVolume(id, target))
	wantMounted(t, host, target, volumeID(2))
}
