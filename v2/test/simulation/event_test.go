package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/winsim"
)

// event befalls the node between two calls. Do says what it did, or nothing if it cannot happen now, and what ends it.
type event struct {
	weight int
	do     func(r *run) (text string, end func())
}

var events = []event{
	{6, exchangeDisk},
	{4, onDisk(loseDisk)},
	{6, onDisk(hangDisk)},
	{4, onDisk(failDisk)},
	{4, onDisk(changeDiskState)},
	{2, onDisk(tearVolume)},
	{4, loseServer},
	{3, losePortal},
	{2, changePassword},
	{4, killDaemon},
	{4, killDriver},
	{1, restartWindows},
	{2, stepClock},
	{6, passTime},
	{8, failCall},
	{8, slowCall},
	{4, cancelVerb},
	{2, attachOther},
	{2, endSessions},
	{3, onDisk(useElsewhere)},
	{4, onDisk(formatFirst)},
}

// repair ends an event.
type repair struct {
	due  time.Time
	text string
	do   func()
}

// befall lets something befall the node, if the seed says so. Half of the events wait until a verb is about to change
// something, and are about its volume.
func (r *run) befall() {
	if r.rest--; r.ending || r.rest > 0 {
		return
	}
	if r.awaits > 0 {
		r.awaits--
		if r.aim = r.nextChange(); r.aim == nil && r.awaits > 0 {
			return
		}
	} else if r.random.IntN(2) == 0 {
		r.awaits = r.restLimit
		return
	}
	r.rest, r.awaits = r.random.IntN(r.restLimit), 0
	total := 0
	for _, e := range events {
		total += e.weight
	}
	n, ends := r.random.IntN(total), time.Duration(1+r.random.IntN(600))*time.Second
	if r.random.IntN(4) == 0 {
		ends *= 5
	}
	at := slices.IndexFunc(events, func(e event) bool {
		n -= e.weight
		return n < 0
	})
	r.events++
	r.ending = r.events >= r.eventLimit
	if r.dropped[r.events] {
		return
	}
	text, end := events[at].do(r)
	r.aim = nil
	synctest.Wait()
	if text == "" {
		return
	}
	r.note("EVENT %d: %s", r.events, text)
	r.happened = append(r.happened, r.events)
	if end != nil {
		r.repairs = append(r.repairs, repair{time.Now().Add(ends), text, end})
	}
	r.hasBefallen()
}

// hasBefallen is called when something other than a call may have changed the state of disks.
func (r *run) hasBefallen() { r.disks, r.befell = nil, time.Now() }

// nextChange is a change of a disk, a mount or a share that a verb is about to make: one of four.
func (r *run) nextChange() *waiter {
	for _, w := range r.waitingCalls() {
		if w.verb != "" && changes(w.call) && w.call.HangsOn().Kind != win.ReachFile && !w.spared {
			if w.spared = true; r.random.IntN(4) == 0 {
				return w
			}
		}
	}
	return nil
}

// repair ends the events that are due.
func (r *run) repair() {
	for i := 0; i < len(r.repairs); {
		if p := r.repairs[i]; !time.Now().Before(p.due) {
			r.repairs = slices.Delete(r.repairs, i, i+1)
			r.note("END of: %s", p.text)
			p.do()
			synctest.Wait()
			r.hasBefallen()
			continue
		}
		i++
	}
}

// onDisk is an event of a volume whose disk is here.
func onDisk(do func(r *run, v *volume, number uint32) (string, func())) func(*run) (string, func()) {
	return func(r *run) (string, func()) {
		v := pickOne(r.random, slices.Concat(r.world.others, r.world.volumes)...)
		if r.aim != nil {
			v = r.aim.volume(r)
		}
		number, ok := r.here(v.serial)
		if v.serial == "" || !ok {
			return "", nil
		}
		v.troubled++
		return do(r, v, number)
	}
}

func exchangeDisk(r *run) (string, func()) {
	if len(r.world.absent) == 0 {
		return "", nil
	}
	var victims []*volume // Windows gives the lowest number that is free
	disks := slices.DeleteFunc(r.node.Describe().Disks, func(d winsim.Disk) bool { return d.Presence != "" })
	for lowest := uint32(1); ; lowest++ {
		i := slices.IndexFunc(disks, func(d winsim.Disk) bool { return d.Number == lowest })
		if i < 0 {
			break
		}
		victims = append(victims, r.volumeOn(disks[i].Serial)...)
	}
	if len(victims) == 0 {
		return "", nil
	}
	v := pickOne(r.random, victims...)
	if r.aim != nil && slices.Contains(victims, r.aim.volume(r)) {
		v = r.aim.volume(r)
	}
	number, _ := r.here(v.serial)
	text, end := loseDisk(r, v, number)
	if end == nil {
		return "", nil
	}
	v.troubled++
	other := r.world.absent[0]
	r.world.absent = r.world.absent[1:]
	got, err := r.node.ReattachSerial(other)
	return fmt.Sprintf("%s, and %s gets number %d (%v)", text, other, got, err), end
}

// comesBack attaches the disk of a volume again, unless the controller has done it.
func (r *run) comesBack(v *volume) func() {
	return func() {
		v.troubled++
		v.badAt = time.Time{}
		if _, ok := r.here(v.serial); !ok {
			_, err := r.node.ReattachSerial(v.serial)
			v.attached = err == nil
			_ = r.node.Disk().Rescan() // its adapter reports it
		}
	}
}

func loseDisk(r *run, v *volume, number uint32) (string, func()) {
	if v.target != "" || v.driver == nil || r.node.DetachDisk(number) != nil {
		return "", nil
	}
	v.attached, v.loss, v.left, v.badAt = false, true, true, time.Now()
	return fmt.Sprintf("the disk of %s, %d, leaves", v.name, number), r.comesBack(v)
}

// healDisk heals the disk of a volume, where it is, and notes for how long it has hung.
func (r *run) healDisk(v *volume) func() {
	return func() {
		v.troubled++
		v.hungFor, v.hungAt, v.badAt = max(v.hungFor, since(v.hungAt)), time.Time{}, time.Time{}
		if number, ok := r.here(v.serial); ok {
			_ = r.node.HealDisk(number)
		}
	}
}

func hangDisk(r *run, v *volume, number uint32) (string, func()) {
	if r.node.HangDisk(number) != nil {
		return "", nil
	}
	if v.badAt = time.Now(); v.hungAt.IsZero() { // it may hang already
		v.hungAt = v.badAt
	}
	return fmt.Sprintf("the disk of %s, %d, hangs", v.name, number), r.healDisk(v)
}

func failDisk(r *run, v *volume, number uint32) (string, func()) {
	if r.node.FailDisk(number) != nil {
		return "", nil
	}
	v.loss, v.badAt = true, time.Now()
	return fmt.Sprintf("the disk of %s, %d, fails", v.name, number), r.healDisk(v)
}

// changeDiskState is what an administrator does, or another process.
func changeDiskState(r *run, v *volume, number uint32) (string, func()) {
	mask, text := win.DiskAttributes{Offline: true}, "offline"
	if r.random.IntN(2) == 0 {
		mask, text = win.DiskAttributes{ReadOnly: true}, "read-only"
	}
	set := func(number uint32, attributes win.DiskAttributes) error {
		if d, _ := r.disk(v.serial); d.Hanging {
			return errNoVolume
		}
		return r.node.SetDiskAttributes(context.Background(), win.PhysicalDrive(number), attributes, mask)
	}
	if set(number, mask) != nil {
		return "", nil
	}
	v.loss = true
	text = fmt.Sprintf("an administrator makes disk %d of %s %s", number, v.name, text)
	var end func()
	end = func() {
		v.troubled++
		if number, ok := r.here(v.serial); (!ok || set(number, win.DiskAttributes{}) != nil) && r.users.Load() > 0 { // later, then
			r.repairs = append(r.repairs, repair{time.Now().Add(time.Minute), text, end})
		}
	}
	return text, end
}

// tearVolume loses the first sector of an unused volume, as a torn write does. Its copy at the end is left.
func tearVolume(r *run, v *volume, number uint32) (string, func()) {
	d, _ := r.disk(v.serial)
	if v.driver == nil || v.stable == "" || v.target != "" || !r.empty(v.staging()) || len(d.Partitions) == 0 ||
		r.node.WriteDisk(number, int64(d.Partitions[len(d.Partitions)-1].Offset), make([]byte, 512)) != nil {
		return "", nil
	}
	v.loss = true
	return fmt.Sprintf("the first sector of %s is lost", v.name), nil
}

func all(*volume) bool        { return true }
func onServer(v *volume) bool { return v.server != "" }
func onTarget(v *volume) bool { return v.target != "" }

// trouble counts what befalls all volumes that have something in common.
func (r *run) trouble(of func(*volume) bool) []*volume {
	for _, v := range r.those(of) {
		v.troubled++
	}
	return r.those(of)
}

func loseServer(r *run) (string, func()) {
	if len(r.trouble(onServer)) == 0 {
		return "", nil
	}
	down := func(down bool) error {
		r.trouble(onServer)
		return r.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Down = down })
	}
	_ = down(true)
	return "the server goes", func() { _ = down(false) }
}

func losePortal(r *run) (string, func()) {
	which := pickOne(r.random, portal, portal2)
	for _, v := range r.trouble(onTarget) {
		v.loss = true
	}
	if len(r.trouble(onTarget)) == 0 || r.node.SetISCSIPortalDown(which, true) != nil {
		return "", nil
	}
	return "the portal " + which + " goes", func() {
		r.trouble(onTarget)
		_ = r.node.SetISCSIPortalDown(which, false)
	}
}

func changePassword(r *run) (string, func()) {
	if len(r.trouble(onServer)) == 0 {
		return "", nil
	}
	r.passwords++
	_ = r.node.ChangeSMBServer("files", func(s *winsim.SMBServer) { s.Accounts[0].Password = r.password() })
	return "the password of the share changes", nil
}

func killDaemon(r *run) (string, func()) {
	r.trouble(all)
	r.endDaemon()
	r.startDaemon()
	return "the daemon dies and starts again", nil
}

func killDriver(r *run) (string, func()) {
	d := pickOne(r.random, r.world.drivers...)
	if r.aim != nil {
		d = r.aim.volume(r).driver
	}
	r.trouble(func(v *volume) bool { return v.driver == d })
	d.process.kill()
	synctest.Wait()
	d.start(r)
	return "the driver " + d.name + " dies and starts again", nil
}

func restartWindows(r *run) (string, func()) {
	r.trouble(all)
	r.killAll()
	for _, v := range r.world.volumes {
		v.loss = true
	}
	synctest.Wait()
	r.node.Reboot()
	r.startAll()
	return "Windows restarts", nil
}

func stepClock(r *run) (string, func()) {
	by := pickOne(r.random, -24*time.Hour, -time.Minute, time.Minute, 365*24*time.Hour)
	r.node.StepClock(by)
	return fmt.Sprintf("the clock steps by %s", by), nil
}

// passTime lets time pass while calls are under way, so that their callers leave.
func passTime(r *run) (string, func()) {
	d := pickOne(r.random, time.Second, 10*time.Second, time.Minute, 3*time.Minute, 10*time.Minute)
	r.trouble(all)
	began := time.Now()
	time.Sleep(d)
	synctest.Wait() // those who have left have noted when
	for _, q := range r.asked {
		if q.ended.IsZero() || q.ended.After(began) { // Windows, not the product, took that long
			q.began = q.began.Add(d)
		}
	}
	return fmt.Sprintf("nothing answers for %s", d), nil
}

// waitingCalls are the calls that wait.
func (r *run) waitingCalls() []*waiter {
	r.mu.Lock()
	calls := slices.DeleteFunc(slices.Clone(r.waiting), func(w *waiter) bool { return w.process == nil || w.code != 0 || w.delay != 0 })
	r.mu.Unlock()
	slices.SortStableFunc(calls, (*waiter).compare)
	return calls
}

// someCall chooses a call that waits, and the volume it is for.
func (r *run) someCall() *waiter {
	calls := r.waitingCalls()
	if len(calls) == 0 {
		return nil
	}
	w := pickOne(r.random, calls...)
	if r.aim != nil {
		w = r.aim
	}
	forAll := w.verb == "" || len(w.call.Args()) == 0 // one asks for all
	r.trouble(func(v *volume) bool { return forAll || v.name == volumeOf(w.verb) })
	return w
}

func failCall(r *run) (string, func()) {
	anyway, ofDisk := pickOne[winerr.Code](r.random, 5, 32), pickOne[winerr.Code](r.random, 5, 21, 32, 121, 1117, 1167)
	ofServer := pickOne[winerr.Code](r.random, 53, 67, 1219, 1326)
	w := r.someCall()
	if w == nil {
		return "", nil
	}
	switch {
	case strings.Contains(w.call.Method, "SMB"):
		w.code = ofServer
	case w.call.HangsOn().Kind == win.ReachFile: // on drive C:
		w.code = anyway
	default:
		w.code = ofDisk
	}
	return fmt.Sprintf("%s will fail with %d", w.text, uint32(w.code)), nil
}

// slowCall makes a call take longer, and sometimes longer than its caller waits.
func slowCall(r *run) (string, func()) {
	delay, times := time.Duration(1+r.random.IntN(90))*time.Second, time.Duration(1+9*r.random.IntN(2))
	w := r.someCall()
	if w == nil {
		return "", nil
	}
	if w.call.HangsOn().Kind != win.ReachFile { // on drive C:
		delay *= times
	}
	w.delay = delay
	for _, v := range r.trouble(all) { // it may be about what all need
		if delay >= silence { // to its callers a disk hangs
			v.hungFor = delay
		}
	}
	return fmt.Sprintf("%s will take %s", w.text, delay), nil
}

func cancelVerb(r *run) (string, func()) {
	if len(r.asked) == 0 {
		return "", nil
	}
	q := pickOne(r.random, r.asked...)
	q.volume.troubled++
	q.cancel()
	return "the kubelet gives up " + q.verb + " " + q.volume.name, nil
}

func attachOther(r *run) (string, func()) {
	if len(r.world.absent) == 0 {
		return "", nil
	}
	other := r.world.absent[0]
	r.world.absent = r.world.absent[1:]
	number, err := r.node.ReattachSerial(other)
	return fmt.Sprintf("the disk %s arrives as %d (%v)", other, number, err), func() {
		if number, ok := r.here(other); ok && r.node.DetachDisk(number) == nil {
			r.world.absent = append(r.world.absent, other)
		}
	}
}

// elsewhere is where others mount and link.
const elsewhere = `C:\elsewhere`

// useElsewhere is another process that mounts a volume, or links to it. Who mounts a LUN wants its session, for ever.
func useElsewhere(r *run, v *volume, _ uint32) (string, func()) {
	id, end := r.volumesOnDisks()[v.serial], func() { _ = r.node.RemoveAll(elsewhere) }
	switch {
	case id == "" || r.node.Exists(elsewhere):
	case r.random.IntN(2) == 0:
		if r.node.Symlink(elsewhere, v.staging()) == nil {
			return "a process links to " + v.name, end
		}
	case v.target == "" && r.node.MountFolder(elsewhere, `\\?\`+id+`\`) == nil:
		return "a process mounts " + v.name, end
	}
	return "", nil
}

// formatFirst is another process, such as one that a driver has left behind, that formats a new volume and writes to it.
func formatFirst(r *run, v *volume, _ uint32) (string, func()) {
	d, _ := r.disk(v.serial)
	path := `\\?\` + r.volumesOnDisks()[v.serial] + `\`
	if v.driver == nil || v.stable+v.written != "" || len(path) < 10 || d.Offline || d.ReadOnly || d.Hanging || d.Dying || d.Partitions[len(d.Partitions)-1].Volume.State != winsim.Raw ||
		r.node.FormatLegacy(context.Background(), win.VolumeID(path), win.FormatOptions{}) != nil {
		return "", nil
	}
	if v.stable = v.name + " of others"; r.node.WriteFile(path+dataFile, v.stable) != nil {
		v.stable = ""
	}
	return "a process formats " + v.name + " and writes to it", nil
}

func endSessions(r *run) (string, func()) {
	r.node.EndSMBSessions()
	return "Windows ends idle sessions with servers", nil
}

func pickOne[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }
