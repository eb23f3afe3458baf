package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/filesystem"
	wholenode "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

const unlinkPause = 30 * time.Second // of the daemon

// podPath is where a pod's link to ofDeadVolume is.
func podPath(pod string) string {
	return kubelet + `\pods\` + pod + `\volumes\kubernetes.io~csi\pv\mount`
}

// publish makes a pod's link, as a driver does.
func publish(t *testing.T, node *winsim.Node, pod string) {
	t.Helper()
	path := podPath(pod)
	prepare(t, node.Mkdir(path[:strings.LastIndexByte(path, '\\')]))
	prepare(t, node.Symlink(path, ofDeadVolume))
}

// unpublish removes it, with the filesystem group as the daemon has it.
func unpublish(t *testing.T, node *winsim.Node, n *wholenode.Node, pod string) {
	t.Helper()
	files, err := filesystem.New(node.Filesystem(), filesystem.WorkingDirs(kubelet), filesystem.OnUnlink(n.NoteUnlinked))
	prepare(t, err)
	_, err = files.Rmdir(t.Context(), &filesystem.RmdirRequest{Path: podPath(pod), Force: true})
	prepare(t, err)
}

// published is a node with a staged volume and the link of a pod.
func published(t *testing.T) *winsim.Node {
	t.Helper()
	node := newNode(t, restartedModel())
	prepare(t, node.MountFolder(ofDeadVolume, deadVolume))
	publish(t, node, "a")
	return node
}

// look looks as the daemon does, for a time.
func look(t *testing.T, node *winsim.Node, n *wholenode.Node, d time.Duration) (err error) {
	t.Helper()
	for ; d >= unlinkPause; d -= unlinkPause {
		sleep(t, node, unlinkPause)
		err = n.RemoveUnlinked(t.Context())
	}
	return err
}

func detach(t *testing.T, node *winsim.Node) { t.Helper(); prepare(t, node.DetachDisk(deadDisk)) }

func reattach(t *testing.T, node *winsim.Node) {
	t.Helper()
	_, err := node.ReattachDisk(deadDisk)
	prepare(t, err)
	sleep(t, node, time.Second)
}

func attach(t *testing.T, node *winsim.Node, disk winsim.Disk) {
	t.Helper()
	disk.Size = winsim.GiB
	_, err := node.AttachDisk(disk)
	prepare(t, err)
}

// offlineDisk is a disk of another owner, with one partition.
func offlineDisk(layout winsim.Layout, kind string) winsim.Disk {
	return winsim.Disk{Offline: true, Layout: layout, Partitions: []winsim.Partition{{Type: kind, Size: 100 * winsim.MiB}}}
}

// TestRemoveUnlinked: the mount of a volume that is gone goes with its folder, within 150 seconds, if a driver has removed
// its last link.
func TestRemoveUnlinked(t *testing.T) {
	for name, change := range map[string]func(*testing.T, *winsim.Node){
		"torn away": func(*testing.T, *winsim.Node) {},
		"another disk is offline": func(t *testing.T, node *winsim.Node) {
			t.Helper()
			attach(t, node, offlineDisk(winsim.LayoutGPT, "basic"))
		},
		"links elsewhere": func(t *testing.T, node *winsim.Node) {
			t.Helper()
			for to, link := range map[string]string{ofLiveVolume: `\live`, `\\files\data\x`: `\share`, kubelet + `\nothing`: `\dangling`} {
				prepare(t, node.Symlink(kubelet+link, to))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := published(t)
			n := healer(t, node)
			change(t, node)
			detach(t, node)
			unpublish(t, node, n, "a")
			prepare(t, look(t, node, n, unlinkPause))
			if !node.Exists(ofDeadVolume) {
				t.Error("it was removed at the first look")
			}
			prepare(t, look(t, node, n, 120*time.Second))
			if node.Exists(ofDeadVolume) || !node.Exists(ofDeadVolume[:strings.LastIndexByte(ofDeadVolume, '\\')]) {
				t.Errorf("there is:\n%s", node.Tree(csi))
			}
			reattach(t, node)
			node.ResetCalls()
			prepare(t, look(t, node, n, time.Hour))
			if calls := node.Calls(); len(calls) > 0 {
				t.Errorf("without anything to look at it makes %v", calls)
			}
		})
	}
}

// TestRemoveUnlinked_LinkedLonger: while a pod has a link, nothing looks, because each look rescans all adapters. The removal of
// that link notes the mount again.
func TestRemoveUnlinked_LinkedLonger(t *testing.T) {
	node := published(t)
	n := healer(t, node)
	publish(t, node, "b")
	detach(t, node)
	unpublish(t, node, n, "a")
	prepare(t, look(t, node, n, 150*time.Second))
	node.ResetCalls()
	prepare(t, look(t, node, n, time.Hour))
	if calls := node.Calls(); len(calls) > 0 {
		t.Errorf("while a pod has a link it makes %d calls", len(calls))
	}
	unpublish(t, node, n, "b")
	prepare(t, look(t, node, n, 150*time.Second))
	if node.Exists(ofDeadVolume) {
		t.Error("the mount is still there")
	}
}

// TestRemoveUnlinked_NotedMeanwhile: a link that goes while a look has seen it is not forgotten.
func TestRemoveUnlinked_NotedMeanwhile(t *testing.T) {
	node := published(t)
	var n *wholenode.Node
	publish(t, node, "b")
	detach(t, node)
	removed := false
	n = newOn(t, win.Intercept(node, func(ctx context.Context, c *win.Call, next func(context.Context) error) error {
		err := next(ctx)
		if point, ok := c.Result.(*win.ReparsePoint); ok && !removed && point.Target() == ofDeadVolume {
			removed = true
			unpublish(t, node, n, "b") //nolint:contextcheck // another caller
		}
		return err
	}), wholenode.WorkingDirs(kubelet), wholenode.VolumeHost(node.Volume()))
	unpublish(t, node, n, "a")
	prepare(t, look(t, node, n, 5*time.Minute))
	if node.Exists(ofDeadVolume) || !removed {
		t.Errorf("the mount is still there; the link was removed: %t", removed)
	}
}

// TestRemoveUnlinked_Kept: in all other cases the mount stays, and the volume is there when its disk is.
func TestRemoveUnlinked_Kept(t *testing.T) {
	for name, run := range map[string]func(t *testing.T, node *winsim.Node, n *wholenode.Node){
		"not unpublished": func(t *testing.T, node *winsim.Node, _ *wholenode.Node) { t.Helper(); detach(t, node) },
		"linked by a pod from before a restart": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			publish(t, node, "b")
			unpublish(t, node, n, "b")
			detach(t, node)
		},
		"linked by a link to a link": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			prepare(t, node.Symlink(kubelet+`\first`, csi[:len(csi)-1]))
			prepare(t, node.Symlink(kubelet+`\second`, kubelet+`\first`+strings.TrimPrefix(ofDeadVolume, csi[:len(csi)-1])))
			unpublish(t, node, n, "a")
			detach(t, node)
		},
		"linked below": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			prepare(t, node.Symlink(kubelet+`\precious`, ofDeadVolume+`\precious`))
			unpublish(t, node, n, "a")
			detach(t, node)
		},
		"a directory cannot be listed": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			unpublish(t, node, n, "a")
			detach(t, node)
			inject(t, node, winsim.Fault{Call: "ListDirectory", Object: `*\pods*`, Error: uint32(winerr.AccessDenied)})
		},
		"hidden disk": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			attach(t, node, winsim.Disk{Hidden: true})
			unpublish(t, node, n, "a")
			detach(t, node)
		},
		"no adapter rescans": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			inject(t, node, winsim.Fault{Call: "RescanAdapter", Error: uint32(winerr.AccessDenied)})
			unpublish(t, node, n, "a")
			detach(t, node)
		},
		"drops twice": func(t *testing.T, node *winsim.Node, n *wholenode.Node) {
			t.Helper()
			unpublish(t, node, n, "a")
			for range 5 {
				detach(t, node)
				_ = look(t, node, n, unlinkPause)
				reattach(t, node)
				_ = look(t, node, n, unlinkPause)
				detach(t, node)
				_ = look(t, node, n, 2*unlinkPause)
				reattach(t, node)
				_ = look(t, node, n, unlinkPause)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := published(t)
			n := healer(t, node)
			run(t, node, n)
			before := node.Tree(csi)
			_ = look(t, node, n, 5*time.Minute)
			if after := node.Tree(csi); after != before {
				t.Errorf("it has changed\n%s\nto\n%s", before, after)
			}
			_, _ = node.ReattachDisk(deadDisk) // unless it is there
			sleep(t, node, time.Second)
			if text, err := node.ReadFile(ofDeadVolume + `\precious`); text != "data" {
				t.Errorf("the volume shows %q, %v", text, err)
			}
		})
	}
}

// TestRemoveUnlinked_Unseen: a pod's link that the search does not see leads nowhere afterwards, not to a folder on drive C.
func TestRemoveUnlinked_Unseen(t *testing.T) {
	node := published(t)
	n := healer(t, node)
	unseen := `C:\elsewhere`
	prepare(t, node.Symlink(unseen, ofDeadVolume))
	unpublish(t, node, n, "a")
	detach(t, node)
	prepare(t, look(t, node, n, 3*time.Minute))
	if node.WriteFile(unseen+`\data`, "lost") == nil {
		t.Errorf("the pod has written to drive C:\n%s", node.Tree(csi))
	}
}

// TestRemoveUnlinked_InTurn: a MountVolume comes first. If its volume is back by then, it succeeds and stays mounted; if
// not, it fails, and the mount goes.
func TestRemoveUnlinked_InTurn(t *testing.T) {
	for _, back := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			node := published(t)
			n, host := healer(t, node), node.Volume()
			unpublish(t, node, n, "a")
			detach(t, node)
			prepare(t, look(t, node, n, time.Minute))
			sleep(t, node, unlinkPause)
			mounted, removed := make(chan error), make(chan error)
			mount := func() { mounted <- host.MountVolume(deadVolume, ofDeadVolume) }
			remove := func() { removed <- n.RemoveUnlinked(t.Context()) }
			comeBack := func() { reattach(t, node) }
			prepare(t, host.(volumeapi.Extended).Exclusively(t.Context(), deadVolume, ofDeadVolume, func(context.Context) error {
				go mount()
				synctest.Wait()
				go remove()
				synctest.Wait()
				if back {
					comeBack()
				}
				return nil
			}))
			if err := <-mounted; (err == nil) != back || !back && winerr.KindOf(err) != winerr.NotFound {
				t.Errorf("back %t: MountVolume says %v", back, err)
			}
			prepare(t, <-removed)
			if node.Exists(ofDeadVolume) != back {
				t.Errorf("back %t:\n%s", back, node.Tree(csi))
			}
		})
	}
}

// TestRemoveUnlinked_Sweep fails each call of a look, while a pod's link leads to a mount whose volume is gone, or while the
// volume is there. What failed has not shown that a mount may go.
func TestRemoveUnlinked_Sweep(t *testing.T) {
	for _, call := range []string{
		"VolumeIDs", "DeviceNumber", "DiskDevices", "HiddenDiskDevices", "DiskAttributes", "DriveLayout", "StorageAdapters", "RescanAdapter", "PersistentLogins",
		"Sessions", "ServiceStatus", "Location", "OpenDirectory", "ListDirectory", "ReparsePoint", "ChangedAt", "VolumePaths", "SystemVolumes", "RemoveLink",
	} {
		for _, code := range []winerr.Code{winerr.FileNotFound, winerr.AccessDenied, winerr.NotReady, winerr.NotSupported, winerr.IODevice} {
			if code == winerr.FileNotFound && (call == "Location" || call == "ListDirectory") {
				continue // a directory that does not exist has no links
			}
			t.Run(fmt.Sprintf("%s fails with %d", call, code), func(t *testing.T) {
				for _, gone := range []bool{true, false} {
					node := published(t)
					n := healer(t, node)
					unpublish(t, node, n, "a")
					if gone {
						publish(t, node, "b")
						detach(t, node)
					}
					before := node.Tree(csi)
					inject(t, node, winsim.Fault{Call: call, Error: uint32(code)})
					_ = look(t, node, n, 3*time.Minute)
					if after := node.Tree(csi); after != before {
						t.Errorf("gone %t: it has changed\n%s\nto\n%s", gone, before, after)
					}
				}
			})
		}
	}
}

// TestRemoveUnlinked_Many: however many links a caller makes and removes, those of a node that loses its disks are looked at,
// and at the same time.
func TestRemoveUnlinked_Many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := restartedModel()
		for i := range 30 {
			model.Disks = append(model.Disks, winsim.Disk{Number: uint32(10 + i), Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
				{Volume: &winsim.Volume{ID: fmt.Sprintf("00000000-0000-0000-0000-%012d", 10+i)}},
			}})
		}
		model.RealTime = true
		node := newNode(t, model)
		n := healer(t, node)
		for i := range 10_000 {
			n.NoteUnlinked(fmt.Sprintf(`%s\none\%d`, kubelet, i))
		}
		n.NoteUnlinked(kubelet + `\` + strings.Repeat(`x\`, 5000))
		prepare(t, n.RemoveUnlinked(t.Context()))
		for i := range 30 {
			path := staging("disk.csi", 10+i)
			prepare(t, node.MountFolder(path, fmt.Sprintf(`\\?\Volume{00000000-0000-0000-0000-%012d}\`, 10+i)))
			n.NoteUnlinked(path)
			prepare(t, node.DetachDisk(uint32(10+i)))
		}
		start := time.Now()
		for range 3 {
			prepare(t, n.RemoveUnlinked(t.Context()))
			time.Sleep(unlinkPause)
		}
		if took := time.Since(start); took > 150*time.Second || strings.Contains(node.Tree(csi), "globalmount") {
			t.Errorf("after %s there is:\n%s", took, node.Tree(csi))
		}
	})
}
