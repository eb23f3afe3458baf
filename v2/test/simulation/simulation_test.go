// Package simulation runs whole nodes in one process and in virtual time: the emulated node, the daemon, drivers of all
// kinds, the kubelet, pods, and all that befalls them. A seed decides every event and the order of all calls, so a failure
// of a seed comes again. docs/testing.md says how to run it.
package simulation

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon"
)

var (
	oneSeed   = flag.Uint64("seed", 0, "run this `seed` alone")
	firstSeed = flag.Uint64("first", 1, "the first `seed`")
	seeds     = flag.Uint64("seeds", 100, "how many seeds to run")
	shrink    = flag.Bool("shrink", false, "drop events of a failing seed while it still fails")
	most      = flag.Int("most", 5, "stop after so many seeds that fail")
)

// TestSimulation runs seeds.
func TestSimulation(t *testing.T) {
	if *oneSeed != 0 {
		*firstSeed, *seeds = *oneSeed, 1
	} else if testing.Short() {
		*seeds = min(*seeds, 20)
	}
	failed := 0
	for seed := *firstSeed; seed < *firstSeed+*seeds && failed < *most; seed++ {
		r := simulate(t, seed, nil)
		if *shrink && r.failure != nil {
			r = smaller(t, r)
		}
		if *oneSeed != 0 && testing.Verbose() {
			t.Logf("seed %d:\n%s", seed, strings.Join(r.trace, "\n"))
		}
		if r.failure != nil && (*oneSeed != 0 || !strings.HasSuffix(r.failure.Error(), byNumber)) {
			failed++
			t.Errorf("seed %d: %v\n%s", seed, r.failure, r.last())
		}
	}
}

// TestReplay: a seed gives the same run again.
func TestReplay(t *testing.T) {
	for seed := range map[bool]uint64{false: 50, true: 3}[testing.Short()] {
		first, second := append(simulate(t, seed+1, nil).trace, "the end"), append(simulate(t, seed+1, nil).trace, "the end")
		for i := range min(len(first), len(second)) {
			if first[i] != second[i] {
				t.Errorf("seed %d differs in line %d of %d and %d:\n%s\n%s", seed+1, i, len(first), len(second), first[i], second[i])
				break
			}
		}
	}
}

// simulate makes a run.
func simulate(t *testing.T, seed uint64, dropped map[int]bool) *run {
	t.Helper()
	r := simulateOnce(t, seed, dropped, false)
	r.compare(func() *run { return simulateOnce(t, seed, nil, true) })
	return r
}

// simulateOnce makes a run; a calm one has no events.
func simulateOnce(t *testing.T, seed uint64, dropped map[int]bool, calm bool) (r *run) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))   // in which order those go on who wait for the same is not chance then
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // a run keeps little, and collecting it took half of the time
	synctest.Test(t, func(t *testing.T) {
		cryptotest.SetGlobalRandom(t, seed)
		r = &run{seed: seed, random: rand.New(rand.NewPCG(seed, 1)), began: time.Now(), arrived: make(chan struct{}, 1), dropped: dropped, calm: calm, names: map[string]string{}, took: map[string]time.Duration{}}
		r.network = newNetwork()
		if err := r.build(); err != nil {
			t.Fatal(err)
		}
		r.play()
	})
	return r
}

// play runs the node until all volumes are gone, and judges what is left.
func (r *run) play() {
	r.eventLimit, r.restLimit = r.random.IntN(16), 1+r.random.IntN(400)
	r.ending = r.eventLimit == 0 || r.calm
	r.heal = pickOne(r.random, daemon.HealOff, daemon.HealReport, daemon.HealAfterRestart, daemon.HealRemove)
	r.startAll()
	before := r.leftovers()
	r.users.Store(int64(len(r.world.volumes)))
	for _, v := range r.world.volumes {
		r.running.Go(func() {
			defer r.signal()
			defer r.users.Add(-1)
			r.live(v)
		})
	}
	r.running.Go(func() { r.look(rand.New(rand.NewPCG(r.seed, 1000))) })
	r.loop(r.idle)
	if r.failure == nil {
		r.ending = true
		end := time.Now().Add(20 * time.Minute) // what is late comes
		r.loop(func() bool { return !time.Now().Before(end) })
	}
	if diff := cmp.Diff(before, r.leftovers()); r.failure == nil && diff != "" {
		r.fail(invariant4, "the node is another (-before +after):\n%s", diff)
	}
	r.end()
}

func (r *run) idle() bool { return r.users.Load() == 0 && len(r.repairs) == 0 }

// end ends all processes.
func (r *run) end() {
	r.ended.Store(true)
	r.killAll()
	for _, q := range r.asked {
		q.cancel()
	}
	r.node.Reboot()
	done := make(chan struct{})
	go func() {
		r.running.Wait()
		close(done)
	}()
	for {
		synctest.Wait()
		r.mu.Lock()
		for _, w := range r.waiting {
			close(w.goOn)
		}
		r.waiting = nil
		r.mu.Unlock()
		select {
		case <-done:
			return
		case <-time.After(time.Minute):
		}
	}
}

// logger checks what is logged, and keeps what is lost and not reached.
func (r *run) logger() klog.Logger {
	return funcr.New(func(_, args string) {
		r.mustNotHoldSecrets(args)
		if strings.Contains(args, "unmounted although") || strings.Contains(args, "Disk stays as it is") {
			r.failing.Lock()
			r.losses = append(r.losses, args)
			r.failing.Unlock()
		}
	}, funcr.Options{Verbosity: 4})
}

// last is the end of the trace, from the last events on.
func (r *run) last() string {
	from := max(0, r.failedAt-25)
	var b strings.Builder
	for i, line := range r.trace {
		if i >= from && i <= r.failedAt || strings.Contains(line, "EVENT") || strings.Contains(line, "END of") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// smaller drops the events of a failing run one by one, while it still breaks the same invariant.
func smaller(t *testing.T, r *run) *run {
	t.Helper()
	dropped := map[int]bool{}
	for _, event := range r.happened {
		dropped[event] = true
		if again := simulate(t, r.seed, dropped); again.failure != nil && again.failure.Error()[:2] == r.failure.Error()[:2] {
			r = again
		} else {
			delete(dropped, event)
		}
	}
	return r
}
