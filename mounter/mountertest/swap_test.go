package mountertest_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	nodeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// TestSwaps lets Heal and Unstage work while folders on the way are exchanged for junctions to folders outside, which
// look the same: there, too, a volume is mounted, and a link leads to a volume that is gone. Nothing there may change.
func TestSwaps(t *testing.T) {
	const (
		kubelet  = `C:\var\lib\kubelet`
		plugins  = kubelet + `\plugins\kubernetes.io\csi`
		driver   = plugins + `\disk.csi`
		outside  = `C:\outside`
		live     = `\\?\Volume{11fe0000-0000-0000-0000-000000000000}\`
		gone     = `\\?\Volume{dead0000-0000-0000-0000-000000000000}\`
		staged   = `\1111111111111111111111111111111111111111111111111111111111111111`
		stale    = `\2222222222222222222222222222222222222222222222222222222222222222`
		mountDir = `\globalmount`
	)
	model := winsim.Default()
	model.Disks = append(model.Disks[:1], winsim.Disk{Number: 1, Size: winsim.GiB, Layout: winsim.LayoutGPT, Partitions: []winsim.Partition{
		{Type: "msr", Size: 16 * winsim.MiB}, {Volume: &winsim.Volume{ID: live}},
	}})
	node, err := winsim.New(model)
	must(t, err)
	for _, root := range []string{driver, outside + `\disk.csi`} {
		must(t, node.Mkdir(root+staged))
		must(t, node.Mkdir(root+stale))
		must(t, node.MountFolder(root+staged+mountDir, live))
		must(t, node.Junction(root+stale+mountDir, gone))
	}
	exchanges := [][2]string{{driver, kubelet + `\driver`}, {driver + staged, kubelet + `\staged`}, {driver + stale, kubelet + `\stale`}}
	for _, exchange := range exchanges {
		must(t, node.Junction(exchange[1], outside+`\disk.csi`+strings.TrimPrefix(exchange[0], driver)))
	}
	var swaps, removals, unstaged atomic.Int64
	node.Observe(func(touch winsim.Touch) {
		if touch.Changed && strings.HasPrefix(touch.Path, outside) {
			t.Errorf("%s changed %s", touch.Call, touch.Path)
		}
	})
	m, err := mounter.New(t.Context(), mountertest.Library(node), mounter.WithWorkingDirs(kubelet))
	must(t, err)
	defer m.Close()
	healer, err := nodeapi.NewOn(node, nodeapi.WorkingDirs(kubelet), nodeapi.VolumeHost(node.Volume()), nodeapi.SMBHost(node.SMB()))
	must(t, err)

	working, rest := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer rest()
	until := func(work func()) func() {
		return func() {
			for working.Err() == nil || swaps.Load() == 0 || removals.Load() == 0 || unstaged.Load() == 0 {
				work()
			}
		}
	}
	var all sync.WaitGroup
	all.Go(until(func() { // one at a time, so that none of them happens outside
		for _, exchange := range exchanges {
			must(t, node.Swap(exchange[0], exchange[1]))
			runtime.Gosched()
			must(t, node.Swap(exchange[0], exchange[1]))
			swaps.Add(2)
		}
	}))
	all.Go(until(func() {
		_ = node.Junction(driver+stale+mountDir, gone) // fails if it is there
		result, err := healer.Heal(t.Context(), nodeapi.HealOptions{Remove: true, MinAge: time.Nanosecond})
		if err != nil {
			return // what is exchanged meanwhile cannot be decided
		}
		for _, s := range result.Stale {
			if s.State == nodeapi.Removed {
				removals.Add(1)
			}
		}
	}))
	all.Go(until(func() {
		_ = node.MountFolder(driver+staged+mountDir, live)
		if m.Unstage(t.Context(), mounter.UnstageRequest{Path: driver + staged + mountDir}) == nil {
			unstaged.Add(1)
		}
	}))
	all.Wait()
	t.Logf("%d exchanges, %d links removed, %d volumes unstaged", swaps.Load(), removals.Load(), unstaged.Load())
	if !node.Exists(outside + `\disk.csi` + staged + mountDir) {
		t.Error("the volume outside is not mounted any more")
	}
}
