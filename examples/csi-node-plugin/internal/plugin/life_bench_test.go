package plugin_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// life are the calls from a blank disk to one that can be detached.
var life = []struct {
	name string
	call func(*pod) error
}{
	{"stage", (*pod).stageOnce},
	{"publish", (*pod).publishOnce},
	{"stats", func(p *pod) error {
		_, err := p.stats()
		return err
	}},
	{"expand", func(p *pod) error {
		_, err := p.expandOnce(int64(grown))
		return err
	}},
	{"unpublish", (*pod).unpublishOnce},
	{"unstage", (*pod).unstageOnce},
}

// grown is the size of a disk when its volume is expanded.
const grown = 15 * winsim.GiB

// live takes the volume of a disk through its life, and returns when each step was under way.
func live(p *pod, disk int) ([]span, error) {
	var spans []span
	for _, s := range life {
		if s.name == "expand" { // the controller has grown the disk
			if err := p.node.GrowDisk(uint32(disk+1), grown); err != nil {
				return nil, err
			}
		}
		from := time.Now()
		if err := s.call(p); err != nil {
			return nil, fmt.Errorf("%s of disk %d: %w", s.name, disk, err)
		}
		spans = append(spans, span{from, time.Now()})
	}
	return spans, nil
}

// diskPod is a pod that wants a data disk of a machine.
func diskPod(d *driver, disk int) *pod {
	d.t.Helper()
	p := &pod{driver: d, handle: "disk/" + serial(disk), capability: mounted("ntfs")}
	p.staging, p.target = paths(d.t, d.node, serial(disk))
	return p
}

// liveAtOnce takes the volumes of some disks through their lives at the same time.
func liveAtOnce(d *driver, first, count int) [][]span {
	d.t.Helper()
	pods := make([]*pod, count)
	for i := range pods {
		pods[i] = diskPod(d, first+i)
	}
	lives, failures := make([][]span, count), make([]error, count)
	var wg sync.WaitGroup
	for i, p := range pods {
		wg.Go(func() { lives[i], failures[i] = live(p, first+i) })
	}
	wg.Wait()
	for _, err := range failures {
		must(d.t, err)
	}
	return lives
}

// BenchmarkLife takes volumes through their lives, 1, 10 and 100 at the same time, on a machine with 100 blank
// disks. The times are those that kubelet sees. With one volume at a time it also reports how long the machine
// worked. An operation is 20 lives or more.
func BenchmarkLife(b *testing.B) {
	const disks, least = 100, 20
	for _, mode := range []string{"daemon", "library"} {
		for _, volumes := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("mode=%s/volumes=%d", mode, volumes), func(b *testing.B) {
				times, worked := map[string][]time.Duration{}, map[string][]time.Duration{}
				var rounds []time.Duration
				calls := 0
				waits := noteWaits(b)
				for b.Loop() {
					b.StopTimer()
					m := newMachine(b, disks)
					d := start(b, m.Node, modes[mode](b, m.Node))
					for first := 0; first < max(least, volumes); first += volumes {
						m.forget()
						m.ResetCalls()
						b.StartTimer()
						from := time.Now()
						lives := liveAtOnce(d, first, volumes)
						rounds = append(rounds, time.Since(from))
						b.StopTimer()
						for _, n := range m.Calls() {
							calls += n
						}
						for _, spans := range lives {
							whole := span{spans[0].from, spans[len(spans)-1].to}
							for i, s := range append(spans, whole) {
								name := "life"
								if i < len(life) {
									name = life[i].name
								}
								times[name] = append(times[name], s.to.Sub(s.from))
								worked[name] = append(worked[name], m.worked(s))
							}
						}
					}
					b.StartTimer()
				}
				for name, all := range times {
					b.ReportMetric(milliseconds(percentile(all, 50)), name+"-p50-ms")
					b.ReportMetric(milliseconds(percentile(all, 99)), name+"-p99-ms")
					if volumes == 1 {
						b.ReportMetric(milliseconds(percentile(worked[name], 50)), name+"-machine-ms")
					}
				}
				lives := float64(len(times["life"]))
				b.ReportMetric(milliseconds(percentile(rounds, 50)), "all-ms")
				b.ReportMetric(float64(calls)/lives, "calls/life")
				b.ReportMetric(milliseconds(waits())/lives, "waits-ms/life")
			})
		}
	}
}

func percentile(all []time.Duration, percent int) time.Duration {
	slices.Sort(all)
	return all[(len(all)-1)*percent/100]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// queues are where a caller of ours waits for another one.
var queues = []string{
	"internal/tasks/queue.(*turn[...]).awaits", "internal/tasks.(*Locks[...]).Acquire", "internal/tasks/shared.(*Answer[...]).await",
	"mounter.(*locks).lock", "mounter.(*endpoint).connect",
}

// noteWaits returns a function that reports how long goroutines have stood in queues and at locks since, all together. The
// runtime counts it.
func noteWaits(b *testing.B) (waited func() time.Duration) {
	b.Helper()
	runtime.SetBlockProfileRate(1)
	b.Cleanup(func() { runtime.SetBlockProfileRate(0) })
	sum := func() (cycles int64) {
		records := make([]runtime.BlockProfileRecord, 10000)
		n, ok := runtime.BlockProfile(records)
		if !ok {
			b.Fatalf("the profile has %d records", n)
		}
		for _, record := range records[:n] {
			if inQueue(record.Stack()) {
				cycles += record.Cycles
			}
		}
		return cycles
	}
	before := sum()
	return func() time.Duration {
		var text bytes.Buffer
		must(b, pprof.Lookup("block").WriteTo(&text, 1))
		var perSecond int64
		if _, err := fmt.Sscanf(text.String(), "--- contention:\ncycles/second=%d", &perSecond); err != nil {
			b.Fatal(err)
		}
		return time.Duration(float64(sum()-before) / float64(perSecond) * float64(time.Second))
	}
}

func inQueue(stack []uintptr) bool {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if slices.ContainsFunc(queues, func(queue string) bool { return strings.Contains(frame.Function, queue) }) {
			return true
		}
		if !more {
			return false
		}
	}
}
