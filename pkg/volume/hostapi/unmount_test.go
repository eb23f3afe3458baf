package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

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

func TestUnmountVolume(t *testing.T) {
	node, host := mounted(t)
	for range 2 {
		must(t, host.UnmountVolume(id, target))
		wantEmptyFolder(t, node)
	}
	wantCalls(t, node, "FlushVolume", 1)
	wantCalls(t, node, "DeleteMountPoint", 1)
	must(t, host.MountVolume(id, target))
	if got, err := node.ReadFile(target + `\precious`); err != nil || got != "data" {
		t.Errorf("after mounting again: %q, %v", got, err)
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
		"offline":  func(n *winsim.Node) error { return n.SetVolumeState(id, winsim.NotReady) },
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

func TestUnmountVolume_CannotFlush(t *testing.T) {
	node, host := mounted(t)
	fault := inject(t, node, winsim.Fault{Call: "FlushVolume", Error: uint32(winerr.IODevice)})
	wantKind(t, "UnmountVolume", host.UnmountVolume(id, target), winerr.Internal, target)
	wantMounted(t, host, target, id)
	fault.Remove()
	must(t, host.UnmountVolume(id, target))
	wantEmptyFolder(t, node)
}

// TestUnmountVolume_DyingDisk: a pod does not wait for ever for a disk that cannot be written to. The
// first failed flush keeps the mount, because it may pass; the second one in a row does not.
func TestUnmountVolume_DyingDisk(t *testing.T) {
	for _, code := range []winerr.Code{winerr.IODevice, winerr.SemTimeout, winerr.GenFailure, winerr.FileInvalid, winerr.FileCorrupt} {
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
		if err := host.WriteVolumeCache(id); winerr.CodeOf(err) != code || !strings.Contains(err.Error(), "may be lost") {
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
	for _, path := range []string{target, target + "2", target} {
		if err := host.UnmountVolume(id, path); err == nil {
			t.Errorf("%s: unmounted, but only another folder was tried before", path)
		}
	}
	must(t, node.Sleep(t.Context(), time.Hour))
	node.StepClock(-time.Hour)
	if err := host.UnmountVolume(id, target); err == nil {
		t.Error("unmounted for a failure of an hour ago")
	}
	node.StepClock(time.Hour)
	must(t, host.UnmountVolume(id, target))
	// Other failures are no property of the disk.
	node, host = mounted(t)
	inject(t, node, winsim.Fault{Call: "FlushVolume", Error: uint32(winerr.DiskFull)})
	for range 3 {
		wantKind(t, "a full disk", host.UnmountVolume(id, target), winerr.NoSpace, target)
	}
}

// TestFlushToUnmount: a caller that takes the disk offline before it unmounts learns of a loss, which is reported once,
// when the volume goes. After a flush, the volume may be gone.
func TestFlushToUnmount(t *testing.T) {
	for _, offline := range []bool{false, true} {
		node, _ := mounted(t)
		var losses []string
		host := volumeapi.NewOn(node, volumeapi.OnLoss(func(text string) { losses = append(losses, text) }))
		flush := func() (string, error) { return host.(volumeapi.UnmountFlusher).FlushToUnmount(id, target) }
		if loss, err := host.(volumeapi.UnmountFlusher).FlushToUnmount(volumeID(2), target); loss != "" || err == nil {
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
			must(t, node.Disk().SetDiskState(1, false))
		}
		must(t, host.UnmountVolume(id, target))
		if wantEmptyFolder(t, node); len(losses) != 1 || !strings.Contains(losses[0], target) {
			t.Errorf("it says %q", losses)
		}
		fault.Remove()
	}
	node, host := mounted(t)
	if loss, err := host.(volumeapi.UnmountFlusher).FlushToUnmount(id, target); loss != "" || err != nil {
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
