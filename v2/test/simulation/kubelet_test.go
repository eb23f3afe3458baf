package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	extensionv1 "github.com/kubernetes-csi/csi-proxy/client/extension/v1"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The kubelet's limits: for a call of CSI, and between two attempts.
const (
	callLimit    = 2 * time.Minute
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 2*time.Minute + 2*time.Second
)

// live takes a volume through its life, as the kubelet, the controller and the pods do, once or twice. A pod may come back
// before the volume could be unstaged.
func (r *run) live(v *volume) {
	for round := range 1 + v.random.IntN(2) {
		time.Sleep(time.Duration(v.random.IntN(20)) * time.Second)
		r.step("the controller attaches "+v.name, func() { r.attach(v) })
		r.runPods(v, round)
		for back := 0; back < 2 && v.random.IntN(2) == 0 && !r.persist(v, "unstage", 1+v.random.IntN(4), unstage); back++ {
			r.runPods(v, round)
		}
		r.until(v, "unstage", unstage)
		r.step("the controller detaches "+v.name, func() { r.detach(v) })
	}
}

func unstage(d verbs, ctx context.Context, v *volume) error { //nolint:revive // of the type of verbs.unstage
	if err := d.unstage(ctx, v); err != nil || v.run.empty(v.staging()) {
		return err
	}
	return fmt.Errorf("%w: something is at %s", errUntrue, v.staging())
}

// runPods stages a volume, and publishes it for one or two pods, which end in any order.
func (r *run) runPods(v *volume, round int) {
	var running []int
	if r.persist(v, "stage", 2+v.random.IntN(6), verbs.stage) {
		running = v.random.Perm(len(v.pods))[:1+v.random.IntN(len(v.pods))]
	}
	for _, pod := range slices.Sorted(slices.Values(running)) {
		r.step("the kubelet makes a folder of a pod", func() { _ = r.node.Mkdir(parentOf(v.targetPath(pod))) })
		if r.persist(v, fmt.Sprintf("publish-%d", pod), 2+v.random.IntN(4), func(d verbs, ctx context.Context, v *volume) error { return d.publish(ctx, v, pod) }) {
			r.write(v, pod, fmt.Sprintf("%s round %d pod %d", v.name, round, pod))
		}
	}
	time.Sleep(time.Duration(v.random.IntN(300)) * time.Second)
	for i, pod := range running { // the others go on
		r.use(v, running[len(running)-1], round)
		r.step(fmt.Sprintf("pod %d of %s ends", pod, v.name), func() { v.pods[pod] = podUse{} })
		r.until(v, "unpublish", func(d verbs, ctx context.Context, v *volume) error { return d.unpublish(ctx, v, pod) })
		r.step("the kubelet removes the folders of a pod", func() { r.removeEmpty(parentOf(v.targetPath(running[i])), pods) })
	}
}

// use is what happens while pods use the volume, of which one is asked for its size.
func (r *run) use(v *volume, pod, round int) {
	random := v.random
	if random.IntN(2) == 0 {
		_ = r.attempt(v, "stats", func(d verbs, ctx context.Context, v *volume) error {
			total, err := d.stats(ctx, v, pod)
			if err == nil && v.server == "" && (total > int64(v.size) || total < int64(winsim.GiB-64*winsim.MiB)) {
				return fmt.Errorf("%w: %d bytes of %d", errUntrue, total, v.size)
			}
			return err
		})
	}
	if random.IntN(3) == 0 && v.server == "" && v.target == "" {
		size := v.size + winsim.GiB
		r.step("the controller grows "+v.name, func() {
			if number, ok := r.here(v.serial); ok && r.node.GrowDisk(number, size) == nil {
				v.size = size
			}
		})
		r.persist(v, "expand", 3, func(d verbs, ctx context.Context, v *volume) error { return d.expand(ctx, v, v.size) })
	}
	for n := range 1 + random.IntN(3) {
		for pod := range v.pods {
			if v.pods[pod].uses {
				r.write(v, pod, fmt.Sprintf("%s round %d pod %d, write %d", v.name, round, pod, n))
			}
		}
		time.Sleep(time.Duration(random.IntN(200)) * time.Second)
	}
	if v.isMounters() && random.IntN(4) == 0 {
		_ = r.attempt(v, "unstage-early", func(d verbs, ctx context.Context, v *volume) error { return d.unstage(ctx, v) })
	}
	if random.IntN(4) == 0 { // a kubelet that restarts stages again what is staged
		_ = r.attempt(v, "stage", verbs.stage)
	}
}

// persist tries a verb a few times.
func (r *run) persist(v *volume, verb string, attempts int, do func(verbs, context.Context, *volume) error) bool {
	wait := firstBackoff
	for range attempts {
		if r.attempt(v, verb, do) == nil {
			return true
		}
		if r.over() {
			return false
		}
		time.Sleep(wait)
		wait = min(2*wait, maxBackoff)
	}
	return false
}

// until tries a verb until it succeeds.
func (r *run) until(v *volume, verb string, do func(verbs, context.Context, *volume) error) {
	if !r.persist(v, verb, 100, do) && !r.over() {
		r.step(verb+" "+v.name+" does not succeed", func() {
			r.fail(invariant4, "%s %s does not succeed in 100 attempts; its disk: %s", verb, v.name, r.diskStates()[v.serial])
		})
	}
}

// attempt makes one call of CSI, and sometimes two at once, which the mounter takes.
func (r *run) attempt(v *volume, verb string, do func(verbs, context.Context, *volume) error) error {
	name := verb + " " + v.name
	q := &question{volume: v, verb: verb}
	r.step("the kubelet calls "+name, func() { r.ask(q) })
	if r.over() {
		return context.Canceled
	}
	defer q.cancel()
	errs := make([]error, 1)
	if v.isMounters() && v.random.IntN(8) == 0 {
		errs = make([]error, 2)
	}
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = v.driver.do(during(q.ctx, name), func(ctx context.Context, d verbs) error { return do(d, ctx, v) })
		})
	}
	all.Wait()
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) }) // which was first is not known
	err := cmp.Or(errs...)
	if verb == "unstage-early" && slices.Contains(errs, nil) {
		err = nil
	}
	q.ended = time.Now()
	r.step(fmt.Sprintf("the answer to %s: %s", name, r.short(err)), func() { r.answered(q, err) })
	return err
}

// short is an error in the trace, without the random names of new volumes.
func (r *run) short(err error) string {
	if err == nil {
		return "OK"
	}
	text := volumeID.ReplaceAllStringFunc(err.Error(), r.nameOf)
	return text[:min(len(text), 160)]
}

// attach is ControllerPublishVolume.
func (r *run) attach(v *volume) {
	if v.serial == "" || v.target != "" || v.attached {
		return
	}
	_, err := r.node.ReattachSerial(v.serial)
	v.attached = err == nil
}

// detach is ControllerUnpublishVolume.
func (r *run) detach(v *volume) {
	if number, ok := r.here(v.serial); ok && v.target == "" && v.serial != "" {
		v.attached = r.node.DetachDisk(number) != nil
	}
	_ = r.node.Mkdir(parentOf(v.staging())) // the kubelet removes the rest
	if r.empty(v.staging()) {
		_ = r.node.RemoveAll(v.staging())
	}
}

// removeEmpty removes a folder and its parents below top if they are empty.
func (r *run) removeEmpty(path, top string) {
	for path != top && r.empty(path) && r.node.RemoveAll(path) == nil {
		path = parentOf(path)
	}
}

// write lets a pod write to its path, and checks where it has gone.
func (r *run) write(v *volume, pod int, text string) {
	r.step(fmt.Sprintf("pod %d of %s writes", pod, v.name), func() {
		if !v.pods[pod].uses || r.node.WriteFile(v.targetPath(pod)+`\`+dataFile, text) != nil {
			return
		}
		if content, err := r.truth(v); err != nil || content != text {
			r.fail(invariant1, "pod %d of %s wrote, and the volume has %q, %v", pod, v.name, content, err)
		}
		v.written, v.flushed, v.writtenAt, v.pods[pod].wrote = text, false, r.period.Load(), true
	})
}

var (
	errUntrue   = errors.New("not true")
	errNoVolume = errors.New("the disk has no volume")
)

// look is what csi-proxyctl does: it describes the node from time to time, until all volumes are gone.
func (r *run) look(random *rand.Rand) {
	for !r.over() && !r.idle() {
		time.Sleep(time.Duration(30+random.IntN(600)) * time.Second)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		var node *extensionv1.Node
		conn, err := r.network.connect(during(ctx, readVerb), "system", "v1alpha1")
		if err == nil {
			node, err = extensionv1.NewInspectorClient(conn).DescribeNode(during(ctx, readVerb), &extensionv1.DescribeNodeRequest{})
			_ = conn.Close()
		}
		cancel()
		r.step("csi-proxyctl has looked at the node: "+r.short(err), func() { r.mustNotHoldSecrets(fmt.Sprint(node, err)) })
	}
}
