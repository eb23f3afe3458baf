package api_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const iscsiPortal = "10.0.0.10:3260"

// wantGone checks that a volume counts as not mounted, in the words that drivers look for.
func wantGone(t *testing.T, host volumeapi.HostAPI, paths ...string) {
	t.Helper()
	for _, path := range paths {
		_, err := host.GetVolumeIDFromTargetPath(path)
		wantKind(t, path, err, winerr.NotFound, "because it does not exist")
		_, err = host.GetClosestVolumeIDFromTargetPath(path)
		wantKind(t, "closest of "+path, err, winerr.NotFound, "because it does not exist")
	}
}

// TestGone_TornAway: a volume whose disk was torn away is not mounted. When the disk comes back, it is again: nothing
// was removed. Only UnmountVolume removes it.
func TestGone_TornAway(t *testing.T) {
	node := links(t, winsim.Healthy)
	host := volumeapi.NewOn(node)
	must(t, node.DetachDisk(firstDisk))
	before := node.Tree(`C:\`)
	wantGone(t, host, mount, pods+`\publish`, pods+`\again`, pods+`\junction`, pods+`\volume`)
	wantMounted(t, host, `D:\`, volumeID(2))
	if node.Tree(`C:\`) != before {
		t.Error("the question has changed something")
	}
	_, err := node.ReattachDisk(firstDisk)
	must(t, err)
	must(t, node.Sleep(t.Context(), time.Minute))
	wantMounted(t, host, mount, id)

	must(t, node.DetachDisk(firstDisk))
	wantGone(t, host, mount)
	for range 2 {
		must(t, host.UnmountVolume(id, mount))
		if got, want := node.Tree(mount), mount+"\n"; got != want {
			t.Errorf("after the unmount there is %q, want %q", got, want)
		}
	}
}

// kept are states in which a volume does not work and is not gone.
var kept = map[string]func(*testing.T, *winsim.Node){
	"fails": func(t *testing.T, node *winsim.Node) { t.Helper(); must(t, node.FailDisk(firstDisk)) },
	"hangs": func(t *testing.T, node *winsim.Node) { t.Helper(); must(t, node.HangDisk(firstDisk)) },
	"no answer": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		inject(t, node, winsim.Fault{Call: "DeviceNumber", Object: id, Delay: time.Hour})
	},
	"being removed": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		inject(t, node, winsim.Fault{Call: "DeviceNumber", Object: id, Error: uint32(winerr.DeviceNotConnected)})
	},
	"offline": takeOffline,
	"locked":  func(t *testing.T, node *winsim.Node) { t.Helper(); must(t, node.SetVolumeState(id, winsim.Locked)) },
	"not ready": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		must(t, node.SetVolumeState(id, winsim.NotReady))
	},
	"back, offline": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		arrive(t, node)
		takeOffline(t, node)
	},
	"needs a rescan": tearAndReturn,
	"arrives":        arrive,
	"another disk is offline": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		must(t, node.DetachDisk(firstDisk))
		setOffline(t, node, firstDisk+1)
	},
	"iSCSI reconnects": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		must(t, node.SetISCSIPortalDown(iscsiPortal, true))
		must(t, node.DetachDisk(firstDisk))
	},
}

func setOffline(t *testing.T, node *winsim.Node, number uint32) {
	t.Helper()
	must(t, node.SetDiskAttributes(t.Context(), win.PhysicalDrive(number), win.DiskAttributes{Offline: true}, win.DiskAttributes{Offline: true}))
}

func takeOffline(t *testing.T, node *winsim.Node) { t.Helper(); setOffline(t, node, firstDisk) }

func tearAndReturn(t *testing.T, node *winsim.Node) {
	t.Helper()
	must(t, node.DetachDisk(firstDisk))
	_, err := node.ReattachDisk(firstDisk)
	must(t, err)
}

// arrive brings the disk back, but its volume comes later.
func arrive(t *testing.T, node *winsim.Node) {
	t.Helper()
	tearAndReturn(t, node)
	must(t, node.RescanAdapter(t.Context(), ""))
}

// inTrouble is a node whose mounted volume is in trouble.
func inTrouble(t *testing.T, name string) *winsim.Node {
	t.Helper()
	model := modelWith(gpt(winsim.GiB, formatted()), gpt(winsim.GiB, winsim.Volume{ID: volumeID(2)}))
	if strings.HasPrefix(name, "iSCSI") {
		model.ISCSI.Portals[0].Registered = true
		model.ISCSI.Logins = []winsim.ISCSILogin{{Target: model.ISCSI.Targets[0].IQN, Portal: iscsiPortal}}
	} else {
		model.Storage.VolumeArrival, model.Storage.AttachByRescan = time.Hour, true
	}
	node := newNode(t, model)
	must(t, node.MountFolder(mount, id))
	must(t, node.Sleep(t.Context(), time.Hour)) // the disk of the iSCSI session has arrived
	if trouble := kept[name]; trouble != nil {
		trouble(t, node)
	} else {
		must(t, node.DetachDisk(firstDisk))
	}
	return node
}

func TestGone_NotGone(t *testing.T) {
	for _, torn := range []string{"torn away", "iSCSI is connected, torn away"} { // the same nodes without trouble
		wantGone(t, volumeapi.NewOn(inTrouble(t, torn)), mount)
	}
	for name := range kept {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				host := volumeapi.NewOn(inTrouble(t, name))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				begin := time.Now()
				wantMounted(t, bind(ctx, host), mount, id)
				if waited := time.Since(begin); waited > 10*time.Second {
					t.Errorf("it took %s", waited)
				}
			})
		})
	}
}

// TestGone_Sweep fails each call that the decision is made of. What failed has not shown that a volume is gone, and one
// that is not gone is never taken for it.
func TestGone_Sweep(t *testing.T) {
	for _, name := range []string{"offline", "arrives", "another disk is offline", "iSCSI reconnects"} {
		for _, call := range []string{
			"VolumeIDs", "DeviceNumber", "VolumeExtents", "DiskDevices", "DiskAttributes", "DriveLayout", "StorageAdapters", "RescanAdapter",
			"PersistentLogins", "Sessions", "DevicesForSession", "ServiceStatus", "ServiceConfig",
		} {
			for _, code := range []winerr.Code{winerr.FileNotFound, winerr.AccessDenied, winerr.NotReady, winerr.NotSupported, winerr.ServiceDoesNotExist, winerr.IODevice} {
				t.Run(fmt.Sprintf("%s/%s fails with %d", name, call, code), func(t *testing.T) {
					node := inTrouble(t, name)
					inject(t, node, winsim.Fault{Call: call, Error: uint32(code)})
					wantMounted(t, volumeapi.NewOn(node), mount, id)
				})
			}
		}
	}
}

// TestGone_AtOnce: when a node loses its disks, drivers ask for many volumes. They share the searches, and a caller
// that does not wait gets no answer rather than a wrong one.
func TestGone_AtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := newNode(t, modelWith(gpt(winsim.GiB, formatted())))
		must(t, node.MountFolder(mount, id))
		must(t, node.DetachDisk(firstDisk))
		host := volumeapi.NewOn(node)
		node.ResetCalls()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := host.GetVolumeIDFromTargetPath(mount); !errors.Is(err, winerr.NotFound) || !strings.Contains(err.Error(), id) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := node.Calls()["VolumeIDs"]; n > 4 {
			t.Errorf("50 callers made %d looks", n)
		}
		inject(t, node, winsim.Fault{Call: "VolumeIDs", Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := bind(ctx, host).GetVolumeIDFromTargetPath(mount); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
	})
}

// TestGone_MountVolume: another volume can be mounted over the mount of one that is gone, and only of such a one.
func TestGone_MountVolume(t *testing.T) {
	for _, name := range []string{"torn away", "offline", "arrives", "fails"} {
		node := inTrouble(t, name)
		host := volumeapi.NewOn(node)
		err := host.MountVolume(volumeID(2), mount)
		if name == "torn away" {
			must(t, err)
			wantMounted(t, host, mount, volumeID(2))
			continue
		}
		wantKind(t, name, err, winerr.Exists, "The requested access path is already in use")
		wantMounted(t, host, mount, id)
	}
	node := inTrouble(t, "torn away")
	before := node.Tree(`C:\`)
	wantKind(t, "of nothing", volumeapi.NewOn(node).MountVolume(volumeID(3), mount), winerr.NotFound, volumeID(3))
	if after := node.Tree(`C:\`); after != before {
		t.Errorf("a mount that failed has changed something:\n%s", after)
	}
}
