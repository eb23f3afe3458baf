package mountertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

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

// TestBadDisk_Unstage: the volume of a bad disk can be unstaged with nothing but the path. What cannot be flushed is
// an error once, and then in the log; of a disk that hangs it is an error until the disk has been silent for six minutes.
func TestBadDisk_Unstage(t *testing.T) {
	for trouble, spoil := range badDisks {
		for verb, unstage := range unstageVerbs {
			t.Run(trouble+"/"+verb, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					k, log := newLoggingKit(t)
					k.must(spoil(k.node, 1))
					k.must(k.Unpublish(k.ctx, target))
					attempts, shortest, longest := 3, time.Duration(0), time.Minute
					if trouble == "hangs" {
						attempts, shortest, longest = 14, 6*time.Minute, 8*time.Minute
					}
					start := time.Now()
					var errs []error
					for {
						err := unstage(k)
						if err == nil {
							break
						}
						if errs = append(errs, err); len(errs) == attempts {
							t.Fatal(errs)
						}
						if trouble == "hangs" {
							time.Sleep(30 * time.Second) // as kubelet does
						}
					}
					if took := time.Since(start); took < shortest || took > longest {
						t.Errorf("it took %v", took)
					}
					if k.node.Exists(staging) {
						t.Error("the path is left")
					}
					if strings.Contains(trouble, "silent") { // what is cached can be written
						return
					}
					if len(errs) == 0 || !strings.Contains(errs[0].Error(), "its cache could not be written, so it stays mounted") {
						t.Errorf("%v", errs)
					}
					if !strings.Contains(log(), "may be lost") {
						t.Errorf("the log has %s", log())
					}
					k.must(k.node.HealDisk(1))
					synctest.Wait() // Windows carries out what it still has
					if trouble != "hangs" {
						return
					}
					if info, err := k.node.DiskInfo(1); err != nil || info.Offline {
						t.Errorf("a disk that could not go offline goes offline later: %+v, %v", info, err)
					}
					k.must(k.stage())
					k.must(second(k.node.ReadFile(staging + `\file`)))
				})
			})
		}
	}
}

// TestBadDisk_Recovers: a disk that hangs for less than six minutes loses nothing, and is unstaged as if it had not.
func TestBadDisk_Recovers(t *testing.T) {
	for verb, unstage := range unstageVerbs {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, log := newLoggingKit(t)
				k.must(k.node.HangDisk(1))
				k.must(k.Unpublish(k.ctx, target))
				for start := time.Now(); time.Since(start) < 5*time.Minute; time.Sleep(30 * time.Second) {
					if err := unstage(k); failure.ClassOf(err) != failure.Unavailable {
						t.Fatal(err)
					}
				}
				k.must(k.node.HealDisk(1))
				synctest.Wait() // Windows carries out what it has
				k.must(unstage(k))
				info, err := k.node.DiskInfo(1)
				k.must(err)
				if offline := verb == "unstage offline" || verb == "a short time"; info.Offline != offline || k.node.Exists(staging) || strings.Contains(log(), "may be lost") {
					t.Errorf("%+v, %s", info, log())
				}
				k.must(k.stage())
				k.must(second(k.node.ReadFile(staging + `\file`)))
			})
		})
	}
}

// unstageVerbs take a volume from its staging path.
var unstageVerbs = map[string]func(k *kit) error{
	"unstage offline": unstagePath,
	"unstage":         func(k *kit) error { return k.Unstage(k.ctx, mounter.UnstageRequest{Path: staging}) },
	"unmount":         func(k *kit) error { return k.WithContext(k.ctx).Unmount(staging) },
	"a short time": func(k *kit) error {
		ctx, cancel := context.WithTimeout(k.ctx, 30*time.Second)
		defer cancel()
		return k.Unstage(ctx, mounter.UnstageRequest{Path: staging, Offline: true})
	},
}

// newLoggingKit has a pod with a file on disk 1, and returns the log so far.
func newLoggingKit(t *testing.T) (k *kit, log func() string) {
	t.Helper()
	var mu sync.Mutex
	var text strings.Builder
	k = newKit(t, mounter.Library, winsim.Default())
	k.ctx = klog.NewContext(t.Context(), funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		text.WriteString(args + "\n")
	}, funcr.Options{}))
	k.must(k.stage())
	k.must(k.Publish(k.ctx, staging, target))
	k.must(k.node.WriteFile(target+`\file`, "text"))
	return k, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

// TestBadDisk_Daemon is TestBadDisk in the other mode, without virtual time, which sockets do not know.
func TestBadDisk_Daemon(t *testing.T) {
	for trouble, spoil := range badDisks {
		if strings.HasSuffix(trouble, "and hangs") {
			continue // for seconds
		}
		t.Run(trouble, func(t *testing.T) {
			k := newKit(t, mounter.Daemon, winsim.Default())
			k.must(k.stage(func(r *mounter.StageRequest) { r.Path, r.Source = badStaging, number(2) }))
			k.must(k.Publish(k.ctx, badStaging, badTarget))
			k.must(spoil(k.node, 2))
			for i, disk := range []mounter.Disk{{Serial: "WINSIM0001"}, {Page83: "WINSIM  disk-1"}, {LUN: "0", Adapter: "1"}} {
				k.live(disk, winsim.Size(20+i)*winsim.GiB)
			}
			k.must(k.node.HealDisk(2))
		})
	}
}

// TestBadDisk_Itself: Stage of a volume on a bad disk fails, and does not take another disk for it.
func TestBadDisk_Itself(t *testing.T) {
	inBothModes(t, func(k *kit) {
		k.must(second(k.FindDisk(k.ctx, mounter.Disk{Serial: "WINSIM0001"})))
		k.must(silence(winsim.Fault{Error: 1117})(k.node, 1))
		if number, err := k.FindDisk(k.ctx, mounter.Disk{Serial: "WINSIM0001"}); failure.ClassOf(err) != failure.Unavailable || !strings.Contains(err.Error(), "disk 1") {
			k.t.Errorf("found disk %d, %v", number, err)
		}
	})
}

// manyVolumes is how many volumes are staged at once beside a bad disk.
const manyVolumes = 100

// stageMany stages volumes on as many disks at once, and returns how long that took and how many calls of Windows, which
// take some time each. With spoil, another disk, whose volume is staged, is bad.
func stageMany(tb testing.TB, each time.Duration, spoil func(*winsim.Node, uint32) error) (took time.Duration, calls int) {
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
	if each > 0 {
		slow, err := node.Inject(winsim.Fault{Delay: each})
		must(tb, err)
		defer slow.Remove()
	}
	node.ResetCalls()
	start := time.Now()
	var wg sync.WaitGroup
	errs := make([]error, manyVolumes)
	for i := range manyVolumes {
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

// TestBadDisk_Many: 100 volumes that are staged at once beside a bad disk take at most 1.3 times as long, and as
// many calls. BenchmarkStageMany has the time by the clock.
func TestBadDisk_Many(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		alone, callsAlone := stageMany(t, time.Millisecond, nil)
		for trouble, spoil := range badDisks {
			beside, callsBeside := stageMany(t, time.Millisecond, spoil)
			t.Logf("%v and %d calls; beside a disk that %s %v and %d", alone, callsAlone, trouble, beside, callsBeside)
			if 10*beside > 13*alone || 10*callsBeside > 13*callsAlone {
				t.Errorf("%v and %d calls, but beside a disk that %s %v and %d", alone, callsAlone, trouble, beside, callsBeside)
			}
		}
	})
}

func BenchmarkStageMany(b *testing.B) {
	for name, spoil := range map[string]func(*winsim.Node, uint32) error{"alone": nil, "beside a disk that hangs": (*winsim.Node).HangDisk} {
		b.Run(name, func(b *testing.B) {
			var total time.Duration
			for b.Loop() {
				took, _ := stageMany(b, 0, spoil)
				total += took
			}
			b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/100-volumes")
		})
	}
}
