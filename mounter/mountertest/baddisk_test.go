package mountertest_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/mounter"
	"github.com/kubernetes-csi/csi-proxy/mounter/mountertest"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// Paths of the volume on the bad disk.
const (
	badStaging = `C:\var\lib\kubelet\plugins\kubernetes.io\csi\test\bad\globalmount`
	badTarget  = `C:\var\lib\kubelet\pods\bad\volumes\kubernetes.io~csi\pv\mount`
)

// badDisks are the ways in which a disk can be bad.
var badDisks = map[string]func(node *winsim.Node, disk uint32) error{
	"fails":               (*winsim.Node).FailDisk,
	"hangs":               (*winsim.Node).HangDisk,
	"is silent":           silence(winsim.Fault{Error: 1117}),
	"is silent and hangs": silence(winsim.Fault{Delay: time.Hour}),
}

// silence makes a disk not even say what it is.
func silence(fault winsim.Fault) func(*winsim.Node, uint32) error {
	return func(node *winsim.Node, disk uint32) error {
		for _, call := range []string{"DeviceDescriptor", "DeviceIdentifiers", "DeviceLocation", "SCSIAddress", "DiskGeometry", "ReadDevice"} {
			fault.Call, fault.Object = call, fmt.Sprintf(`\\.\PhysicalDrive%d`, disk)
			if _, err := node.Inject(fault); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestBadDisk: with a bad disk that a pod uses, all other volumes are found by every key, and live as without it. In
// virtual time nothing waits for the bad disk for long.
func TestBadDisk(t *testing.T) {
	for name, c := range map[string]struct {
		model func() winsim.Model
		bad   uint32
		keys  []mounter.Disk // of disk 1
	}{
		"SCSI":           {winsim.Default, 2, []mounter.Disk{{Serial: "WINSIM0001"}, {SerialPrefix: "WINSIM0001"}, {Page83: "WINSIM  disk-1"}, {LUN: "0", Adapter: "1"}, number(1)}},
		"Compute Engine": {winsim.GCENVMe, 2, []mounter.Disk{{EUI64: "10cc9636b6e3ce3b"}}},
		"Azure":          {winsim.AzureNVMe, 2, []mounter.Disk{{NGUID: "371bbe562601463d8419338d66a00002"}, {LUN: "0"}, {NamespaceID: 2}}},
	} {
		for trouble, spoil := range badDisks {
			for _, restarted := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/restarted %t", name, trouble, restarted), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						k := newKit(t, mounter.Library, c.model())
						k.must(k.stage(func(r *mounter.StageRequest) { r.Path, r.Source = badStaging, number(c.bad) }))
						k.must(k.Publish(k.ctx, badStaging, badTarget))
						for _, disk := range c.keys { // as for each volume that was staged
							k.must(second(k.FindDisk(k.ctx, disk)))
						}
						k.must(spoil(k.node, c.bad))
						if restarted { // the driver, so that it has not known the disk
							k.restart()
						}
						start := time.Now()
						for i, disk := range c.keys {
							if restarted && disk == (mounter.Disk{LUN: "0"}) && strings.Contains(trouble, "silent") {
								continue // the LUNs of NVMe disks are known only if all of them answer
							}
							k.live(disk, winsim.Size(200+i)*winsim.GiB)
						}
						// A disk that has not been known delays the first search, and one that hangs each look for sizes a little.
						limit := 3 * time.Second
						if restarted {
							limit = 15 * time.Second
						}
						if took := time.Since(start); took > limit {
							t.Errorf("it took %v", took)
						}
						if info, err := k.node.DiskInfo(1); err != nil || !info.Offline {
							t.Errorf("%+v, %v", info, err)
						}
						k.must(k.node.HealDisk(c.bad))
					})
				})
			}
		}
	}
}

// live takes the volume of disk 1 through its life.
func (k *kit) live(disk mounter.Disk, grow winsim.Size) {
	k.t.Helper()
	k.must(k.stage(func(r *mounter.StageRequest) { r.Source = disk }))
	k.must(k.Publish(k.ctx, staging, target))
	k.must(k.node.WriteFile(target+`\file`, "text"))
	size := int64(grow)
	k.must(k.node.GrowDisk(1, grow))
	k.must(second(k.NeedsResize(k.ctx, target)))
	grown, err := k.Expand(k.ctx, target, size)
	k.must(err)
	usage, err := k.Stats(k.ctx, target)
	k.must(err)
	if grown.DiskBytes != size || usage.TotalBytes != grown.VolumeBytes || size-usage.TotalBytes > 1<<30 {
		k.t.Errorf("%+v, %+v", grown, usage)
	}
	k.must(k.Unpublish(k.ctx, target))
	k.must(k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true}))
}

// manyVolumes is how many volumes are staged at once beside a bad disk.
const manyVolumes = 100

// stageMany stages volumes on as many disks at once, and returns how long that took and how many calls of Windows, which
// take a millisecond each. With spoil, another disk, whose volume is staged, is bad.
func stageMany(tb testing.TB, volumes int, spoil func(*winsim.Node, uint32) error) (took time.Duration, calls int) {
	tb.Helper()
	model := winsim.Default()
	model.Disks = model.Disks[:1]
	for i := range manyVolumes + 1 {
		model.Disks = append(model.Disks, winsim.Disk{
			Number: uint32(i + 1), Size: winsim.GiB, Bus: winsim.BusSAS, Serial: fmt.Sprintf("MANY%03d", i+1), SCSI: &winsim.SCSI{Port: 1, Target: uint8(i)},
		})
	}
	node, err := winsim.New(model)
	must(tb, err)
	defer node.Reboot() // it ends what the bad disk holds
	m, err := mounter.New(tb.Context(), mountertest.Library(node))
	must(tb, err)
	stage := func(i int) error { // in folders of drivers of their own: more than 16 in one folder come to the search one after the other
		_, err := m.Stage(tb.Context(), mounter.StageRequest{
			Path: fmt.Sprintf(`C:\var\lib\kubelet\plugins\kubernetes.io\csi\many%d\1\globalmount`, i), Source: mounter.Disk{Serial: fmt.Sprintf("MANY%03d", i)},
		})
		return err
	}
	must(tb, stage(manyVolumes+1))
	if spoil != nil {
		must(tb, spoil(node, manyVolumes+1))
	}
	slow, err := node.Inject(winsim.Fault{Delay: time.Millisecond})
	must(tb, err)
	defer slow.Remove()
	node.ResetCalls()
	start := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, volumes)
	for i := range errs {
		wg.Go(func() { errs[i] = stage(i + 1) })
	}
	wg.Wait()
	must(tb, errors.Join(errs...))
	took = time.Since(start)
	for _, n := range node.Calls() {
		calls += n
	}
	must(tb, node.HealDisk(manyVolumes+1))
	return took, calls
}

// TestBadDisk_Many: 100 volumes that are staged at once do not wait for each other, and share the questions to all disks. Beside
// a bad disk they take at most 1.3 times as long, and as many calls.
func TestBadDisk_Many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, callsOfOne := stageMany(t, 1, nil)
		alone, callsAlone := stageMany(t, manyVolumes, nil)
		if alone > 2*one || callsAlone > manyVolumes*callsOfOne/2 {
			t.Errorf("%v and %d calls, and one %v and %d", alone, callsAlone, one, callsOfOne)
		}
		for trouble, spoil := range badDisks {
			beside, callsBeside := stageMany(t, manyVolumes, spoil)
			t.Logf("%v and %d calls; beside a disk that %s %v and %d", alone, callsAlone, trouble, beside, callsBeside)
			if 10*beside > 13*alone || 10*callsBeside > 13*callsAlone {
				t.Errorf("%v and %d calls, but beside a disk that %s %v and %d", alone, callsAlone, trouble, beside, callsBeside)
			}
		}
	})
}

// TestBadDisk_Stage: whenever its disk begins to hang, Stage says so within a minute, also without a deadline, and so does Unstage
// after it.
func TestBadDisk_Stage(t *testing.T) {
	for name, c := range map[string]struct {
		model  func() winsim.Model
		source mounter.Source
		disk   uint32
	}{"formatted": {attachedNode, number(1), 1}, "blank": {blankNode, number(1), 1}, "LUN": {targetNode, lun(3, portalA), 3}} {
		t.Run(name, func(t *testing.T) {
			n, step := 1, 1
			if testing.Short() {
				n, step = sample(5)
			}
			for more := true; more; n += step {
				synctest.Test(t, func(t *testing.T) {
					more = newKit(t, mounter.Library, c.model()).hang(c.source, c.disk, winsim.Fault{Nth: n, Times: 1})
				})
			}
		})
	}
	t.Run("daemon", func(t *testing.T) {
		if testing.Short() {
			t.Skip("it takes half a minute")
		}
		newKit(t, mounter.Daemon, attachedNode()).hang(number(1), 1, winsim.Fault{Call: "FileSystem", Times: 1})
	})
}

// hang stages and unstages a volume whose disk begins to hang at a call, and reports whether Stage has made that call.
func (k *kit) hang(source mounter.Source, disk uint32, at winsim.Fault) bool {
	k.t.Helper()
	at.Do = func(node *winsim.Node) { _ = node.HangDisk(disk) }
	fault, err := k.node.Inject(at)
	k.must(err)
	for i := range 3 {
		start := time.Now()
		_, err := k.Stage(k.ctx, mounter.StageRequest{Path: staging, Source: source})
		if fault.Hits() == 0 {
			return false
		}
		if i > 0 {
			err = k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging, Offline: true})
		}
		if took := time.Since(start); err != nil && failure.ClassOf(err) != failure.Unavailable || took > time.Minute {
			k.t.Errorf("call %d, attempt %d: %v after %v", at.Nth, i, err, took)
		}
	}
	return true
}
