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
	_, err := node.AttachDisk(winsim.Disk{Size: winsim.GiB, NoMedium: true})
	must(t, err)
	must(t, node.DetachDisk(firstDisk))
	before := node.Tree(`C:\`)
	wantGone(t, host, mount, pods+`\publish`, pods+`\again`, pods+`\junction`, pods+`\volume`)
	wantMounted(t, host, `D:\`, volumeID(2))
	if node.Tree(`C:\`) != before {
		t.Error("the question has changed something")
	}
	_, err = node.ReattachDisk(firstDisk)
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
	"needs a rescan":        tearAndReturn,
	"arrives":               arrive,
	"offline, a copy":       beside(winsim.Disk{Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{ID: volumeID(2)[len(`\\?\Volume`) : len(volumeID(2))-1]}}}),
	"offline, it looks raw": beside(winsim.Disk{Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{}}, LooksRaw: 1 << 20}),
	"offline, does not read": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		beside(winsim.Disk{Number: 9, Offline: true})(t, node)
		must(t, node.FailDisk(9))
	},
	"raw, with a boot sector": beside(winsim.Disk{Bytes: []winsim.Bytes{{Offset: 510, Text: "\x55\xaa"}}}),
	"raw, ReFS":               beside(winsim.Disk{Bytes: []winsim.Bytes{{Offset: 3, Text: "ReFS\x00"}}}),
	"offline, MBR":            beside(winsim.Disk{Offline: true, Layout: winsim.LayoutMBR, Partitions: []winsim.Partition{{}}}),
	"offline, dynamic":        beside(winsim.Disk{Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: "ldm-data"}}}),
	"offline, in a pool":      beside(winsim.Disk{Offline: true, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{{Type: win.PartitionSpaces.String()}}}),
	"a disk is hidden":        beside(winsim.Disk{Hidden: true}),
	"no adapter can rescan": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		must(t, node.DetachDisk(firstDisk))
		inject(t, node, winsim.Fault{Call: "RescanAdapter", Error: uint32(winerr.AccessDenied)})
	},
	"iSCSI reconnects": func(t *testing.T, node *winsim.Node) {
		t.Helper()
		must(t, node.SetISCSIPortalDown(iscsiPortal, true))
		must(t, node.DetachDisk(firstDisk))
	},
}

// beside tears the disk away beside another one that may hold its volume.
func beside(other winsim.Disk) func(*testing.T, *winsim.Node) {
	other.Size = winsim.GiB
	return func(t *testing.T, node *winsim.Node) {
		t.Helper()
		_ = node.DetachDisk(firstDisk) // unless it is
		_, err := node.AttachDisk(other)
		must(t, err)
		must(t, node.RescanAdapter(t.Context(), ""))
	}
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
	node := inTrouble(t, "torn away") // three disks that hold none, or others
	beside(winsim.Disk{Offline: true})(t, node)
	beside(winsim.Disk{Bytes: []winsim.Bytes{{Text: "LUKS\xba\xbe"}}})(t, node)
	setOffline(t, node, firstDisk+1)
	wantGone(t, volumeapi.NewOn(node), mount)
	wantMounted(t, volumeapi.NewOn(win.Intercept(inTrouble(t, "offline"), func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		err := next(ctx)
		if layout, ok := c.Result.(*win.DriveLayout); ok {
			for i := range layout.Partitions {
				layout.Partitions[i].Number = 0 // no partition of a disk that is offline has a device
			}
		}
		return err
	})), mount, id)
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
	for _, name := range []string{"offline", "arrives", "offline, MBR", "a disk is hidden", "iSCSI reconnects"} {
		for _, call := range []string{
			"VolumeIDs", "DeviceNumber", "VolumeExtents", "DiskDevices", "DiskAttributes", "DriveLayout", "StorageAdapters", "RescanAdapter",
			"HiddenDiskDevices", "PersistentLogins", "Sessions", "DevicesForSession", "ServiceStatus", "ServiceConfig",
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
	inject(t, node, winsim.Fault{Call: "FileSystem", Object: volumeID(2), Times: 1, Do: func(node *winsim.Node) {
		_, err := node.ReattachDisk(firstDisk)
		must(t, err)
		must(t, node.RescanAdapter(t.Context(), ""))
		must(t, node.Sleep(t.Context(), 2*time.Hour))
	}})
	wantKind(t, "comes back", volumeapi.NewOn(node).MountVolume(volumeID(2), mount), winerr.Exists, "The requested access path is already in use")
	wantMounted(t, volumeapi.NewOn(node), mount, id)
	node = inTrouble(t, "torn away")
	before := node.Tree(`C:\`)
	wantKind(t, "of what is gone", volumeapi.NewOn(node).MountVolume(id, mount), winerr.NotFound, id)
	wantKind(t, "of nothing", volumeapi.NewOn(node).MountVolume(volumeID(3), mount), winerr.NotFound, volumeID(3))
	if after := node.Tree(`C:\`); after != before {
		t.Errorf("a mount that failed has changed something:\n%s", after)
	}
}

// TestGone_Rescans: however many ask, the adapters rescan once a minute. Nothing else is remembered: each answer asks
// whether the volume is missing, twice, and lists all disks and volumes.
func TestGone_Rescans(t *testing.T) {
	node := links(t, winsim.Healthy)
	host := volumeapi.NewOn(node)
	must(t, node.DetachDisk(firstDisk))
	adapters, err := node.StorageAdapters(t.Context())
	must(t, err)
	rescans := func(when string, want int) {
		t.Helper()
		if got := node.Calls()["RescanAdapter"]; got != want*len(adapters) {
			t.Errorf("%s: %d rescans of %d adapters, want %d of each", when, got, len(adapters), want)
		}
	}
	node.ResetCalls()
	for question := range 10 {
		asked := inject(t, node, winsim.Fault{Call: "DeviceNumber", Object: id, Do: func(*winsim.Node) {}})
		looks := node.Calls()["VolumeIDs"]
		_, err := host.GetVolumeIDFromTargetPath(mount)
		wantKind(t, mount, err, winerr.NotFound, "because it does not exist")
		if n := asked.Hits(); n < 2 || node.Calls()["VolumeIDs"] != looks+2 {
			t.Errorf("question %d asked %d times whether the volume is missing", question, n)
		}
		asked.Remove()
	}
	rescans("10 questions", 1)
	_, err = node.ReattachDisk(firstDisk)
	must(t, err)
	must(t, node.Sleep(t.Context(), time.Second))
	wantMounted(t, host, mount, id)
	must(t, node.DetachDisk(firstDisk))
	must(t, node.Sleep(t.Context(), time.Minute))
	wantGone(t, host, mount)
	rescans("a minute later", 2)

	must(t, node.Sleep(t.Context(), time.Minute))
	inject(t, node, winsim.Fault{Call: "RescanAdapter", Error: uint32(winerr.AccessDenied)})
	for range 2 {
		wantMounted(t, host, mount, id)
	}
	rescans("refused", 4)
}

// TestGone_RescanFails: while a rescan has not ended, and when it found an adapter that does not answer, nothing is gone,
// and no other rescan begins. One that Windows refuses is repeated.
func TestGone_RescanFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := inTrouble(t, "torn away")
		host := volumeapi.NewOn(node)
		refused := inject(t, node, winsim.Fault{Call: "StorageAdapters", Error: uint32(winerr.IODevice)})
		wantMounted(t, host, mount, id)
		refused.Remove()
		wantGone(t, host, mount)

		must(t, node.Sleep(t.Context(), time.Hour))
		hung := inject(t, node, winsim.Fault{Call: "RescanAdapter", Delay: 2 * time.Minute})
		node.ResetCalls()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := bind(ctx, host).GetVolumeIDFromTargetPath(mount); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		begun := node.Calls()["RescanAdapter"]
		wantMounted(t, host, mount, id)
		if n := node.Calls()["RescanAdapter"]; begun == 0 || n != begun {
			t.Errorf("%d calls to rescan, and %d after another question", begun, n)
		}
		hung.Remove()
		time.Sleep(2 * time.Minute)
		must(t, node.Sleep(t.Context(), time.Hour))
		wantGone(t, host, mount)
	})
}
