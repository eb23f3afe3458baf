package bounds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// The limits. The Go runtime ends a program that has 10,000 threads, so callers that ask a dead disk at the same moment must
// not get one each. They are per object, and for files per volume, so that what is dead does not delay those who
// ask for something else.
const (
	// maxRunning is how many calls of one kind run on one object at once.
	maxRunning = 16

	// maxRunningTogether is the same for a server, and for all files of a volume.
	maxRunningTogether = 64

	// maxThreads is how many calls run altogether. It is a last resort, as for files of a volume that is mounted near the
	// root: there is no limit for them.
	maxThreads = 8000

	// maxWait is how long a call waits for one that is stuck, and for a line that does not move. Most stuck calls return
	// soon: their callers just had short deadlines.
	maxWait = time.Second

	// maxSlowWait is the same for a line of calls that take seconds, such as those to WMI.
	maxSlowWait = 30 * time.Second
)

// lineKey is what calls of one line hang on. Calls of an inspector have lines of their own: a driver that asks a disk while
// its controller resets gets its answer although an inspector has given up on the disk before.
type lineKey struct {
	win.HangPoint
	inspector, locating bool
}

// line is the calls on one object.
type line struct {
	running []*call         // the oldest first
	waiting []chan struct{} // closed when it may be their turn, in order of arrival
	moved   time.Time       // when a call last began or ended
}

// call is a call that runs. The mutex of the machine guards it.
type call struct {
	at       win.HangPoint
	lines    []lineKey // that it is in
	room     [2]lineKey
	begun    time.Time
	returned bool
	done     chan struct{} // closed by end

	abandoned time.Time // zero while its caller waits
	stuckCall           // after that
}

// admit lets a call begin. It waits for its turn, a moment if nothing moves, and then fails.
func (b *Machine) admit(ctx context.Context, c *call) error {
	key := lineKey{c.at, win.IsInspector(ctx), ctx.Value(locating{}) != nil}
	c.lines = append(c.room[:0], key)
	if c.at.Kind == win.ReachFile {
		key.HangPoint = win.HangPoint{Kind: filesOfVolume, Object: volumeFolder(c.at.Object)}
		c.lines = append(c.lines, key)
	}
	for before := b.enter(c, nil); before != nil; before = b.enter(c, before) {
		moved, err := b.wait(ctx, before)
		if err != nil {
			return err
		}
		if !moved && !b.replaced(ctx, before.stuck) {
			return stuckError{fmt.Errorf("%w: an earlier call to %s has not come back from Windows, since %.0f s", winerr.Unavailable, c.at.Kind, time.Since(before.begun).Seconds())}
		}
	}
	if c.begun.IsZero() {
		return stuckError{fmt.Errorf("%w: %d calls have not come back from Windows", winerr.Unavailable, b.most)}
	}
	return nil
}

// obstacle is why a call waits.
type obstacle struct {
	key   lineKey
	stuck *call     // nil if too many calls run, or others came before
	begun time.Time // of the oldest of them
	since time.Time // it counts as an obstacle
	turn  chan struct{}
}

// limit is how long the obstacle may stay.
func (o *obstacle) limit() time.Duration {
	quick := []win.Kind{win.ReachFile, win.ReachServer, win.ReachVolume, win.AskDriver, win.AskDisk, win.ReadDisk, filesOfVolume}
	if o.stuck != nil || slices.Contains(quick, o.key.Kind) {
		return maxWait
	}
	return maxSlowWait
}

// wait waits until it may be the turn of a call. It is false if a call is stuck, or the line does not move.
func (b *Machine) wait(ctx context.Context, before *obstacle) (turn bool, err error) {
	timer := time.NewTimer(before.limit() - time.Since(before.since))
	defer timer.Stop()
	for {
		select {
		case <-before.turn:
			return true, nil
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
		left := b.giveUp(before, err != nil)
		if err != nil || left == 0 {
			return false, err
		}
		timer.Reset(left)
	}
}

// giveUp takes a call that waits out of its line, unless that has moved and it stays: then it returns for how long.
func (b *Machine) giveUp(before *obstacle, leaves bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lines[before.key]
	if l == nil { // it is the turn of this call, and no other is there
		return before.limit()
	}
	at := slices.Index(l.waiting, before.turn)
	left := before.limit() - time.Since(l.moved)
	switch {
	case leaves && at < 0:
		l.wake() // it was the turn of this call
		return 0
	case !leaves && (at < 0 || left > 0 && !slices.Contains(l.running, before.stuck)):
		return max(left, 1)
	}
	l.waiting = slices.Delete(l.waiting, at, at+1)
	b.tidy(before.key)
	return 0
}

// stuckError matches win.ErrStuck.
type stuckError struct{ error }

func (e stuckError) Unwrap() error { return e.error }

func (stuckError) Is(target error) bool { return target == win.ErrStuck }

// enter puts a call into its lines, or among those who wait for one: at the end, or in front if it has waited before. The
// call does not begin if too many run.
func (b *Machine) enter(c *call, last *obstacle) *obstacle {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, key := range c.lines {
		l := b.lines[key]
		if l == nil {
			continue
		}
		before := l.obstacle(key, i > 0)
		if before == nil && len(l.waiting) > 0 && last == nil {
			before = &obstacle{key: key, begun: l.moved, since: l.moved}
		}
		if before == nil {
			continue
		}
		before.turn = make(chan struct{})
		at := len(l.waiting)
		if last != nil && last.key == key {
			at = 0
		}
		l.waiting = slices.Insert(l.waiting, at, before.turn)
		for _, other := range c.lines {
			if o := b.lines[other]; o != nil && other != key {
				o.wake() // it does not go on there
				b.tidy(other)
			}
		}
		return before
	}
	if b.threads == b.most {
		for _, key := range c.lines {
			if l := b.lines[key]; l != nil {
				l.wake()
				b.tidy(key)
			}
		}
		return nil
	}
	b.threads++
	c.begun = time.Now()
	for i, key := range c.lines {
		l := b.lines[key]
		if l == nil {
			l = &line{}
			b.lines[key] = l
		}
		l.running, l.moved = append(l.running, c), c.begun
		if l.obstacle(key, i > 0) == nil {
			l.wake()
		}
	}
	return nil
}

// tidy forgets a line without calls. mu is held.
func (b *Machine) tidy(key lineKey) {
	if l := b.lines[key]; l != nil && len(l.running)+len(l.waiting) == 0 {
		delete(b.lines, key)
	}
}

// obstacle returns why no call may begin now, if so: one is stuck, or too many run. That one file hangs says nothing of
// others of its volume.
func (l *line) obstacle(key lineKey, together bool) *obstacle {
	if !together {
		for _, c := range l.running {
			if !c.abandoned.IsZero() {
				return &obstacle{key: key, stuck: c, begun: c.begun, since: c.abandoned}
			}
		}
	}
	limit := maxRunning
	if together || key.Kind == win.ReachServer {
		limit = maxRunningTogether
	}
	if len(l.running) < limit {
		return nil
	}
	return &obstacle{key: key, begun: l.running[0].begun, since: l.moved}
}

func (l *line) wake() {
	if len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
}

// hasReturned notes that Windows has answered, and reports whether the caller still waits.
func (b *Machine) hasReturned(c *call) (awaited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.returned = true
	return c.abandoned.IsZero()
}

// end is the last thing that the goroutine of a call does.
func (b *Machine) end(c *call, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.threads--
	b.leave(c)
	if !c.abandoned.IsZero() {
		b.stuck.Add(-1)
	}
	b.forget(c)
	if winerr.CodeOf(err) != winerr.SemTimeout { // Windows says that of a disk which does not answer
		b.noteAnswer(c)
	}
	close(c.done)
}

// leave takes a call out of its lines. mu is held.
func (b *Machine) leave(c *call) {
	for _, key := range c.lines {
		l := b.lines[key]
		l.running = slices.DeleteFunc(l.running, func(other *call) bool { return other == c })
		l.moved = time.Now()
		l.wake()
		b.tidy(key)
	}
	c.lines = nil
}

// filesOfVolume is the kind of the line of all files of a volume.
const filesOfVolume win.Kind = "reach files of a volume"

// volumeNames is how many names are before those of the files on a volume: kubelet has its volumes at
// C:\var\lib\kubelet\plugins\kubernetes.io\csi\DRIVER\ID\globalmount and C:\var\lib\kubelet\pods\POD\volumes\kubernetes.io~csi\ID\mount.
const volumeNames = 8

// volumeFolder is the folder of all files that may hang together.
func volumeFolder(path string) string {
	at := 0
	for range 1 + volumeNames { // and the drive
		next := strings.IndexByte(path[at:], '\\')
		if next < 0 {
			return winpath.Fold(path)
		}
		at += next + 1
	}
	return winpath.Fold(path[:at])
}
