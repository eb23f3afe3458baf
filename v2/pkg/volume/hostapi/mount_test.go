package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const target = pods + `\target`

// twoVolumes has a second formatted volume on disk 2.
func twoVolumes() winsim.Model {
	return modelWith(gpt(winsim.GiB, formatted()), gpt(winsim.GiB, winsim.Volume{ID: volumeID(2)}))
}

// TestMountVolume_ReadOnly: a pod that cannot write must leave a trace in the log, at the
// verbosity that operators run.
func TestMountVolume_ReadOnly(t *testing.T) {
	for _, readOnly := range []bool{true, false} {
		disk := gpt(winsim.GiB, formatted())
		disk.ReadOnly = readOnly
		node := newNode(t, modelWith(disk))
		var lines []string
		logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		must(t, bind(klog.NewContext(t.Context(), logger), volumeapi.NewOn(node)).MountVolume(id, target))
		wantCalls(t, node, "FileSystem", 1)
		log := strings.Join(lines, "\n")
		if logged := strings.Contains(log, "read-only") && strings.Contains(log, "target"); logged != readOnly {
			t.Errorf("with a read-only disk %v the log is %q", readOnly, log)
		}
	}
}

// TestMountVolume_NeverReplaces lets something else stand at the path.
func TestMountVolume_NeverReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*winsim.Node) error
		kind    winerr.Kind
	}{
		"another volume":      {func(n *winsim.Node) error { return n.MountFolder(target, volumeID(2)) }, winerr.Exists},
		"a junction":          {func(n *winsim.Node) error { return n.Junction(target, pods) }, winerr.Exists},
		"a link":              {func(n *winsim.Node) error { return n.Symlink(target, pods) }, winerr.Exists},
		"a link to nowhere":   {func(n *winsim.Node) error { return n.Symlink(target, `X:\`) }, winerr.Exists},
		"a link to the mount": {func(n *winsim.Node) error { return n.Symlink(target, id) }, winerr.Exists},
		"a file":              {func(n *winsim.Node) error { return n.WriteFile(target, "data") }, winerr.Exists},
		"a folder with files": {func(n *winsim.Node) error { return n.WriteFile(target+`\file`, "data") }, winerr.InUse},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, twoVolumes())
			must(t, c.prepare(node))
			before := node.Tree(`C:\`)
			for range 2 {
				wantKind(t, "MountVolume", volumeapi.NewOn(node).MountVolume(id, target), c.kind, target)
			}
			if after := node.Tree(`C:\`); after != before {
				t.Errorf("something changed:\n%s", after)
			}
		})
	}
}

func TestMountVolume_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		volume winsim.Volume
		path   string
		kind   winerr.Kind
		text   string
	}{
		"a volume without a file system": {unformatted(), target, winerr.InUse, "FormatVolume"},
		"a locked volume":                {winsim.Volume{ID: id, State: winsim.Locked}, target, winerr.InUse, "BitLocker"},
		"an offline volume":              {winsim.Volume{ID: id, State: winsim.NotReady}, target, winerr.Unavailable, id},
		"a volume that is gone":          {winsim.Volume{ID: id, State: winsim.Gone}, target, winerr.NotFound, id},
		"an unknown volume":              {winsim.Volume{ID: volumeID(2)}, target, winerr.NotFound, id},
		"a folder on no drive":           {formatted(), `X:\missing\x`, winerr.NotFound, "drive"},
		"a drive that is there":          {formatted(), `C:\`, winerr.Invalid, `C:\`},
		"a drive that is not":            {formatted(), `X:\`, winerr.Invalid, `X:\`},
	} {
		t.Run(name, func(t *testing.T) {
			node := nodeWith(t, c.volume)
			before := node.Tree(`C:\`)
			wantKind(t, "MountVolume", volumeapi.NewOn(node).MountVolume(id, c.path), c.kind, c.text)
			wantCalls(t, node, "SetMountPoint", 0)
			if after := node.Tree(`C:\`); after != before {
				t.Errorf("something changed:\n%s", after)
			}
		})
	}
}

// TestMountVolume_TakesTheFolderBack lets the mount itself fail after the folder was made.
func TestMountVolume_TakesTheFolderBack(t *testing.T) {
	for _, c := range []struct {
		code winerr.Code
		kind winerr.Kind
	}{
		{winerr.FileNotFound, winerr.NotFound},
		{winerr.AccessDenied, winerr.Denied},
		{winerr.InvalidFunction, winerr.Unsupported},
		{winerr.InvalidParameter, winerr.Invalid},
		{winerr.IODevice, winerr.Internal},
	} {
		node := nodeWith(t, formatted())
		fault := inject(t, node, winsim.Fault{Call: "SetMountPoint", Error: uint32(c.code)})
		host := volumeapi.NewOn(node)
		wantKind(t, "MountVolume", host.MountVolume(id, target), c.kind, target)
		if node.Exists(target) {
			t.Errorf("%v: the folder stays behind", c.code)
		}

		must(t, node.Mkdir(target))
		wantKind(t, "MountVolume", host.MountVolume(id, target), c.kind, target)
		if !node.Exists(target) {
			t.Errorf("%v: a folder that was there before is gone", c.code)
		}

		fault.Remove()
		must(t, host.MountVolume(id, target))
	}
}

// TestMountVolume_Races lets another process act between two steps.
func TestMountVolume_Races(t *testing.T) {
	for name, c := range map[string]struct {
		call string
		do   func(*winsim.Node) error
		kind winerr.Kind // if it fails
		want string      // what is mounted in the end
	}{
		"with the same mount":             {"SetMountPoint", func(n *winsim.Node) error { return remount(n, id) }, 0, id},
		"with another mount":              {"SetMountPoint", func(n *winsim.Node) error { return remount(n, volumeID(2)) }, winerr.Exists, volumeID(2)},
		"with a file in the folder":       {"SetMountPoint", func(n *winsim.Node) error { return n.WriteFile(target+`\x`, "") }, winerr.InUse, ""},
		"with the folder":                 {"CreateDirectory", func(n *winsim.Node) error { return n.Mkdir(target) }, 0, id},
		"with another mount, before that": {"CreateDirectory", func(n *winsim.Node) error { return remount(n, volumeID(2)) }, winerr.Exists, volumeID(2)},
		"by taking the folder away":       {"SetMountPoint", func(n *winsim.Node) error { return n.RemoveAll(target) }, winerr.NotFound, ""},
		"by taking the volume away":       {"SetMountPoint", func(n *winsim.Node) error { return n.DetachDisk(firstDisk) }, winerr.NotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			node := newNode(t, twoVolumes())
			inject(t, node, winsim.Fault{Call: c.call, Times: 1, Do: func(n *winsim.Node) { must(t, c.do(n)) }})
			host := volumeapi.NewOn(node)
			if err := host.MountVolume(id, target); c.kind == 0 {
				must(t, err)
			} else {
				wantKind(t, "MountVolume", err, c.kind, target)
			}
			wantMounted(t, host, target, c.want)
		})
	}
}

func remount(n *winsim.Node, volume string) error {
	return errors.Join(n.RemoveAll(target), n.MountFolder(target, volume))
}

// TestMountVolume_FolderInUse lets a scanner have the folder open for a moment, and for ever.
func TestMountVolume_FolderInUse(t *testing.T) {
	node := nodeWith(t, formatted())
	host := volumeapi.NewOn(node)
	fault := inject(t, node, winsim.Fault{Call: "SetMountPoint", Error: uint32(winerr.SharingViolation), Times: 3})
	must(t, host.MountVolume(id, target))
	if fault.Hits() != 3 {
		t.Errorf("%d attempts failed, want 3", fault.Hits())
	}
	fault = inject(t, node, winsim.Fault{Call: "SetMountPoint", Error: uint32(winerr.SharingViolation)})
	wantKind(t, "in use for ever", host.MountVolume(id, target+"2"), winerr.Busy, target+"2")
	if node.Exists(target+"2") || fault.Hits() > 50 {
		t.Errorf("the folder stays behind, or there were too many attempts: %d", fault.Hits())
	}
}

// twoNames is a machine on which a volume has a second name.
type twoNames struct{ *winsim.Node }

var secondName = volumeID(77)

func (m twoNames) DeviceNumber(ctx context.Context, d win.Device) (win.DeviceNumber, error) {
	if d == win.VolumeID(secondName).Device() {
		d = win.VolumeID(id).Device()
	}
	return m.Node.DeviceNumber(ctx, d)
}

func TestMountVolume_SecondName(t *testing.T) {
	node := newNode(t, twoVolumes())
	host := volumeapi.NewOn(twoNames{node})
	must(t, host.MountVolume(id, target))
	must(t, host.MountVolume(secondName, target))
	wantKind(t, "another volume", host.MountVolume(volumeID(2), target), winerr.Exists, target)
	wantKind(t, "another volume", host.UnmountVolume(volumeID(2), target), winerr.InUse, target)
	must(t, host.UnmountVolume(secondName, target))
	wantMounted(t, host, target, "")
}

func TestMountVolume_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := nodeWith(t, formatted())
		host := volumeapi.NewOn(node)
		inject(t, node, winsim.Fault{Call: "SetMountPoint", Delay: time.Minute})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		err := bind(ctx, host).MountVolume(id, target)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), target) {
			t.Errorf("got %v, want the deadline and the path", err)
		}
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("the caller waited %v, want 1s", waited)
		}
		must(t, host.MountVolume(id, target))
		wantCalls(t, node, "SetMountPoint", 1)
	})
}
