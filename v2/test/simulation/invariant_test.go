package simulation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// The invariants.
const (
	invariant1 = "I1: a pod's path shows its own volume's bytes, or an error; never another's, never C:"
	invariant2 = "I2: what a pod wrote before an Unstage that said OK is there at the next Stage, unless a loss was reported"
	invariant3 = "I3: no disk changes that no request was about"
	invariant4 = "I4: after all pods are gone and all is healed, the node is as before the first pod"
	invariant5 = "I5: every call ends within its limits; one bad object does not keep others"
	invariant6 = "I6: nothing that did not answer is taken for gone; no read changes anything"
	invariant7 = "I7: an OK was true when it was said"
	invariant8 = "I8: no secret in a log, an error or a description"
)

// The limits of a call: the kubelet's, and that for a volume that nothing befell, whatever befalls others. Of that,
// five seconds go to the search beside a disk that has never said what it is.
const (
	slack       = time.Second
	healthyTime = 30 * time.Second
)

// byNumber is a limit, not a fault: the published calls name a disk by its number, and nothing in them says which disk a
// driver means. If a disk leaves between the question of such a driver for the number and its call, the call is about the
// disk that has the number then. Drivers that use the mounter say it.
const byNumber = "; its driver knows disks by number, and the disk has left"

// limit returns byNumber if all these verbs are of such drivers, whose disks have left.
func (r *run) limit(verbs ...string) string {
	for _, verb := range verbs {
		if !slices.ContainsFunc(r.world.volumes, func(v *volume) bool {
			return !v.isMounters() && v.left && v.name == volumeOf(verb)
		}) {
			return ""
		}
	}
	return byNumber
}

// readVerb is the verb of csi-proxyctl. It and stats only read.
const readVerb = "read node"

func reads(verb string) bool { return verb == readVerb || strings.HasPrefix(verb, "stats ") }

// volumeOf is the volume of a verb such as "stage disk-1".
func volumeOf(verb string) string { return verb[strings.LastIndex(verb, " ")+1:] }

// fail reports the first broken invariant.
func (r *run) fail(invariant, format string, args ...any) {
	r.failing.Lock()
	defer r.failing.Unlock()
	if r.failure == nil && !r.ended.Load() {
		r.failure = fmt.Errorf("%s\n%s", invariant, fmt.Sprintf(format, args...))
		r.failedAt = len(r.trace)
		r.signal()
	}
}

// over reports whether the run has failed or ended.
func (r *run) over() bool {
	r.failing.Lock()
	defer r.failing.Unlock()
	return r.failure != nil || r.ended.Load()
}

// question is a verb under way.
type question struct {
	volume       *volume
	verb         string
	began, ended time.Time
	troubled     int
	mounted      bool            // something was at the staging path
	ctx          context.Context //nolint:containedctx // the kubelet's
	cancel       context.CancelFunc
}

// ask begins a question.
func (r *run) ask(q *question) {
	q.ctx, q.cancel = context.WithTimeout(context.Background(), callLimit)
	q.began, q.troubled, q.mounted = time.Now(), q.volume.troubled, !r.empty(q.volume.staging())
	r.asked = append(r.asked, q)
	switch v := q.volume; {
	case q.verb == "stage": // Unstage waits again then
		v.leftAt = time.Time{}
	case q.verb == "unstage" && v.leftAt.IsZero():
		v.leftAt = time.Now()
	}
	q.volume.saidGone.Store(false)
}

// answered judges an answer.
func (r *run) answered(q *question, err error) {
	r.asked = slices.DeleteFunc(r.asked, func(other *question) bool { return other == q })
	took, limit := q.ended.Sub(q.began), callLimit+slack
	if q.verb == "stats" && !q.volume.isMounters() { // two questions without a deadline
		limit *= 2
	}
	v, well := q.volume, q.troubled == q.volume.troubled && q.volume.sound(r)
	if err != nil {
		r.mustNotHoldSecrets(err.Error())
		if v.isMounters() && failure.ClassOf(err) == failure.Internal && !strings.Contains(err.Error(), "the device reported") && !errors.Is(err, context.Canceled) {
			r.fail(invariant5, "the error of %s %s has no class: %v", q.verb, v.name, err)
		}
	}
	switch {
	case q.verb == "unstage-early":
		if err == nil && (v.pods[0].uses || v.pods[1].uses) {
			r.fail(invariant7, "%s was unstaged, and pods use it", v.name)
		}
		return
	case errors.Is(err, errUntrue):
		if well {
			r.fail(invariant7, "%s %s: %v", q.verb, v.name, err)
		}
		return
	case took > limit:
		r.fail(invariant5, "%s %s took %s", q.verb, v.name, took)
	case v.troubled == 0 && took > healthyTime:
		r.fail(invariant5, "%s %s took %s, and nothing befell it", q.verb, v.name, took)
	case v.troubled == 0 && err == nil:
		verb, _, _ := strings.Cut(q.verb, "-")
		r.took[verb] = max(r.took[verb], took)
	case v.troubled == 0:
		r.fail(invariant5, "%s %s failed, and nothing befell it: %v", q.verb, v.name, err)
	}
	_, here := r.here(v.serial)
	certain := here || !slices.ContainsFunc(r.repairs, func(p repair) bool { return !strings.Contains(p.text, v.name) })
	if bad := min(since(v.badAt), since(r.befell), since(v.leftAt)); q.verb == "unstage" && err != nil && bad > badLimit && certain {
		r.fail(invariant5, "%s cannot be unstaged although its disk has failed, hung or left for %s: %v", v.name, bad, err)
	}
	if v.saidGone.Load() && here && q.mounted && q.troubled == v.troubled {
		r.fail(invariant6, "%s said that %s is not mounted, and its disk is there:\n%s", q.verb, v.name, r.node.Tree(v.staging()))
	}
	if err != nil {
		return
	}
	switch verb, pod, _ := strings.Cut(q.verb, "-"); verb { // the folders of unpublish are checked at the end
	case "stage":
		r.staged(v, well)
	case "publish":
		p := int(pod[0] - '0')
		v.pods[p].uses = true
		r.shows(v, v.targetPath(p), well)
	case "unstage":
		r.unstaged(v, well && (q.mounted || !v.left)) // what has come back at another place may be a copy
	case "expand":
		if d, _ := r.disk(v.serial); well && len(d.Partitions) > 0 && d.Partitions[len(d.Partitions)-1].Size < v.size-64*winsim.MiB {
			r.fail(invariant7, "%s was expanded to %s, want %s", v.name, d.Partitions[len(d.Partitions)-1].Size, v.size)
		}
	}
}

// compare checks that verbs for volumes which nothing befell took no longer than 1.3 times as long as in the same run where
// nothing befell anything. Beside a disk that has never said what it is, a search takes five seconds.
func (r *run) compare(calm func() *run) {
	const search = 6 * time.Second
	slow := slices.DeleteFunc(slices.Sorted(maps.Keys(r.took)), func(verb string) bool { return r.took[verb] <= search })
	if r.failure != nil || len(slow) == 0 {
		return
	}
	usual := calm().took
	for _, verb := range slow {
		if r.took[verb] > usual[verb]*13/10+search {
			r.arrived = make(chan struct{}, 1) // the other one's bubble has ended
			r.fail(invariant5, "%s took %s, and %s where nothing befell anything", verb, r.took[verb], usual[verb])
		}
	}
}

// sound reports whether nothing is wrong with a volume now.
func (v *volume) sound(r *run) bool {
	return !slices.ContainsFunc(r.repairs, func(p repair) bool {
		return strings.Contains(p.text, v.name) || v.server != "" && strings.Contains(p.text, "server") || v.target != "" && strings.Contains(p.text, "portal")
	})
}

// staged checks a volume that was just staged: its data is there, and the path leads to it.
func (r *run) staged(v *volume, well bool) {
	want := v.stable
	if v.written != "" { // it is staged again
		want = v.written
	}
	if content, err := r.truth(v); err == nil && want != "" && !v.loss && content != want {
		r.fail(invariant2, "%s has %q, want %q", v.name, content, want)
	} else if well && err != nil && v.stable != "" {
		r.fail(invariant7, "%s was staged, and the node does not have it: %v", v.name, err)
	}
	if v.sound(r) {
		v.loss, v.flushErrors, v.hungFor = false, 0, 0
	}
	r.shows(v, v.staging(), well)
}

// shows writes to a path, and looks for it on the volume itself.
func (r *run) shows(v *volume, path string, well bool) {
	before, beforeErr := r.truth(v)
	text := fmt.Sprintf("%s at %s", v.name, time.Since(r.began))
	if err := r.node.WriteFile(path+`\`+dataFile, text); err != nil {
		// Others link to what a restart has taken, and mount what is read-only.
		if d, _ := r.disk(v.serial); well && (v.isMounters() || path == v.staging() && !d.ReadOnly) {
			r.fail(invariant7, "%s is at %s, and cannot be written to: %v", v.name, path, err)
		}
		return
	}
	if content, err := r.truth(v); err != nil || content != text {
		r.fail(invariant1, "%s should be at %s; what was written there is not on it: %q, %v%s", v.name, path, content, err, r.limit(v.name))
		return
	}
	if beforeErr == nil { // it stays as it was
		_ = r.node.WriteFile(path+`\`+dataFile, before)
	} else {
		v.written, v.flushed, v.writtenAt = text, false, r.period.Load()
	}
}

// silence is how long a disk does not answer before what is not on it counts as lost. BadLimit is how long a volume can stay
// staged because of its disk: silence, and some attempts of the kubelet.
const (
	silence  = 6 * time.Minute
	badLimit = 20 * time.Minute
)

// unstaged checks that what was written last is on the disk, and that the disk is as its driver wants it.
func (r *run) unstaged(v *volume, well bool) {
	if d, ok := r.disk(v.serial); ok && well && !r.said(v, "does not take it offline") && v.target == "" && v.written != "" && !d.Offline && (v.isMounters() && v.offline || !v.isMounters() && v.troubled == 0) && !r.node.Exists(elsewhere) {
		r.fail(invariant7, "%s was unstaged, and its disk is online", v.name)
	}
	said := r.said(v, "lost")
	if hung := max(v.hungFor, since(v.hungAt)); said && !v.loss && v.flushErrors < 2 && hung < silence {
		r.fail(invariant6, "what was written to %s counts as lost after %d errors, and its disk was silent for %s", v.name, v.flushErrors, hung)
	}
	if v.written != "" {
		if v.serial != "" && !v.flushed && !v.loss && !said {
			r.fail(invariant2, "%s was unstaged, its cache was not written, and no loss was said", v.name)
		}
		v.stable, v.written = v.written, ""
	}
}

func since(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return time.Since(t)
}

// empty reports whether a path is a folder of C: without content, or nothing.
func (r *run) empty(path string) bool {
	return strings.Count(r.node.Tree(path), "\n") <= 1 && !strings.ContainsAny(r.node.Tree(path), ">")
}

// check looks at the node after each step.
func (r *run) check() {
	r.mu.Lock()
	finished := r.finished
	underWay := slices.Clone(r.underWay)
	r.finished = nil
	r.mu.Unlock()
	slices.SortStableFunc(finished, (*waiter).compare) // those who ended together ended in no order
	about := map[string]bool{}                         // the volumes of which there was something to do
	var verbs []string                                 // of what has changed something
	for _, w := range slices.Concat(finished, underWay) {
		about[volumeOf(w.verb)] = true
	}
	for _, w := range finished {
		if w.err != nil {
			r.note("  %s: %s", w.text, r.short(w.err))
		}
		if !changes(w.call) {
			continue
		}
		verbs = append(verbs, w.verb)
		if reads(w.verb) {
			r.fail(invariant6, "%s", w)
		}
		for _, q := range r.asked { // an earlier unmount may be late
			q.mounted = q.mounted && (w.call.Method != "DeleteMountPoint" || q.volume.name != volumeOf(w.verb))
		}
		r.hasHappened(w)
	}
	if len(verbs) == 0 {
		return
	}
	before, now := r.disks, r.diskStates()
	for serial, state := range now {
		was, ok := before[serial]
		isAbout := func(v *volume) bool { return about[v.name] }
		if ok && was != state && !slices.ContainsFunc(r.volumeOn(serial), isAbout) {
			r.fail(invariant3, "disk %s was\n%s\nand is\n%s\nafter %s%s", serial, was, state, finished, r.limit(verbs...))
		}
		for _, v := range r.volumeOn(serial) { // an old request of the volume's own
			if (v.pods[0].uses || v.pods[1].uses) && strings.HasPrefix(was, "offline false") && strings.HasPrefix(state, "offline true") {
				r.fail(invariant3, "the disk of %s went offline, and a pod uses it: %s", v.name, finished)
			}
		}
	}
	r.disks = now
	r.podsSeeTheirOwn()
}

// changes reports whether a call changes more than what Windows remembers.
func changes(c *win.Call) bool { return !c.Asks() && !refreshes[c.Method] }

var refreshes = map[string]bool{"RescanAdapter": true, "UpdateDisk": true, "UpdateDriveSize": true, "RefreshStorageCache": true}

// podsSeeTheirOwn reads what pods read.
func (r *run) podsSeeTheirOwn() {
	for _, v := range r.world.volumes {
		for pod, p := range v.pods {
			if !p.uses || !p.wrote {
				continue
			}
			if text, err := r.node.ReadFile(v.targetPath(pod) + `\` + dataFile); err == nil && !strings.HasPrefix(text, v.name+" ") {
				r.fail(invariant1, "pod %d of %s reads %q%s", pod, v.name, text, r.limit(v.name))
			}
		}
	}
}

// hasHappened notes what a call has done to a volume: a flush, or a format, which no volume with data survives.
func (r *run) hasHappened(w *waiter) {
	for _, v := range r.world.volumes {
		if v.serial == "" || !strings.Contains(w.text, "volume-of-"+v.serial) {
			continue
		}
		switch w.call.Method {
		case "FlushVolume":
			if w.err != nil {
				v.flushErrors++
			} else if v.flushErrors = 0; w.admitted > v.writtenAt {
				v.flushed = true
			}
		case "Format", "FormatLegacy":
			if w.err == nil && v.stable+v.written != "" {
				r.fail(invariant2, "%s had %q and %q, and was formatted: %s", v.name, v.stable, v.written, w)
			}
		}
	}
}

// those are the volumes of a kind.
func (r *run) those(are func(*volume) bool) []*volume {
	return slices.DeleteFunc(slices.Clone(r.world.volumes), func(v *volume) bool { return !are(v) })
}

// volume is the one of the verb.
func (w *waiter) volume(r *run) *volume {
	return r.those(func(v *volume) bool { return v.name == volumeOf(w.verb) })[0]
}

// volumeOn is the volume on a disk, or none.
func (r *run) volumeOn(serial string) []*volume {
	return r.those(func(v *volume) bool { return v.serial == serial })
}

// diskStates are what requests can change of the disks that are here, by serial number.
func (r *run) diskStates() map[string]string {
	states := map[string]string{}
	for _, d := range r.allDisks() {
		if d.System || d.Presence != "" && d.Presence != winsim.DiskAttached { // on the system's are folders and links
			continue
		}
		fingerprint, err := r.node.DiskFingerprint(d.Number)
		states[d.Serial] = fmt.Sprintf("offline %t, read-only %t, %s, %d partitions, %s %v", d.Offline, d.ReadOnly, d.Layout, len(d.Partitions), fingerprint, err)
	}
	return states
}

// leftovers are what pods leave on a node: sessions, mappings, and everything in the kubelet's directories.
func (r *run) leftovers() []string {
	// The mounter keeps the folder of its records, and nothing in it.
	left := slices.DeleteFunc(strings.Split(r.node.Tree(`C:\`), "\n"), func(line string) bool { return strings.HasSuffix(line, `\plugins\csi-proxy-mounter`) })
	for _, s := range r.node.Describe().ISCSI.Sessions {
		left = append(left, "session with "+s.Target)
	}
	for _, m := range r.node.Describe().SMBMappings {
		left = append(left, "mapping of "+m.Remote)
	}
	return left
}

// mustNotHoldSecrets checks what is shown to people.
func (r *run) mustNotHoldSecrets(text string) {
	if strings.Contains(text, secret) {
		r.fail(invariant8, "%s", text)
	}
}

// said reports whether a log has had a text about a volume since it was asked before.
func (r *run) said(v *volume, what string) bool {
	r.failing.Lock()
	defer r.failing.Unlock()
	count := len(r.losses)
	r.losses = slices.DeleteFunc(r.losses, func(text string) bool {
		return strings.Contains(text, v.name+`\\globalmount`) && strings.Contains(text, what)
	})
	return len(r.losses) < count
}
