package bounds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// stuckCall is what is known of a change, and of a call that was abandoned.
type stuckCall struct {
	change string // what it does to its object, with %s; empty if it changes nothing
	object string // a device, a volume's device, an iSCSI target or session
	path   string // of a mount, folded: it can be seen before Windows answers, and is undone if its caller has left

	// Where it is, which is looked for after it was abandoned. Other disks do not get the interface paths.
	located  bool
	disks    []win.Device
	names    []string  // \\.\PhysicalDrive3, for each
	answered time.Time // when these last answered another call
}

// locateLimit is how long Windows may take to say which disk it is. Drivers know it without the disk.
const locateLimit = 5 * time.Second

// begin notes a change before it is made.
func (b *Machine) begin(c *call, of *win.Call) {
	c.change, c.object = of.Change(), c.at.Object
	if c.change == "" {
		return
	}
	c.object = of.Changed()
	if of.Method == "SetMountPoint" {
		c.path = winpath.Fold(of.Entry())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, c)
}

// Announce implements win.Pending.
func (b *Machine) Announce(change, object string) (end func()) {
	c := &call{begun: time.Now(), abandoned: time.Now(), done: make(chan struct{}), stuckCall: stuckCall{change: change, object: object}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(b.changes, c)
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.forget(c)
	}
}

// forget removes a change. mu is held.
func (b *Machine) forget(c *call) {
	b.changes = slices.DeleteFunc(b.changes, func(other *call) bool { return other == c })
}

// abandon makes a call stuck. It is false if the call has returned.
func (b *Machine) abandon(ctx context.Context, c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.returned {
		return false
	}
	b.abandoned.Add(1)
	b.stuck.Add(1)
	c.abandoned = time.Now()
	if ctx.Value(locating{}) == nil && isDevice(c.object) && (c.change != "" || isNumber(c.object)) {
		go b.locate(context.WithoutCancel(ctx), c) // now, while its disk has its number
	}
	return true
}

// locating marks the calls that find out which disk a stuck call is about.
type locating struct{}

// locate finds out on which disks the object of a stuck call is, unless that is known. It is false if Windows does not say.
func (b *Machine) locate(ctx context.Context, c *call) bool {
	b.mu.Lock()
	located := c.located
	b.mu.Unlock()
	if located {
		return true
	}
	disks, names, err := b.disksOf(ctx, c.object)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && !c.located {
		c.located, c.disks, c.names = true, disks, names
	}
	return c.located
}

// disksOf returns the disks of a device by their interface paths, and by their numbers; none if it is gone. It asks only
// what drivers answer without the disk. It fails if one of them does not, and that disk may be meant.
func (b *Machine) disksOf(ctx context.Context, device string) (paths []win.Device, names []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, locating{}, true), locateLimit)
	defer cancel()
	wanted, err := b.numbersOf(ctx, device)
	switch _, isVolume := win.ParseVolumeID(device); {
	case err != nil && !isVolume && !isNumber(device): // it is named by its path
		return []win.Device{win.Device(device)}, nil, nil
	case err != nil || len(wanted) == 0:
		return nil, nil, err
	}
	devices, err := b.DiskDevices(ctx)
	if err != nil {
		return nil, nil, err
	}
	numbers := make([]win.DeviceNumber, len(devices))
	failures := tasks.Each(ctx, len(devices), locateLimit, func(ctx context.Context, i int) (err error) {
		numbers[i], err = b.DeviceNumber(ctx, devices[i])
		return err
	})
	for i, number := range numbers {
		if failures[i] == nil && number.Type == win.DeviceTypeDisk && slices.Contains(wanted, number.Number) {
			paths, names = append(paths, devices[i]), append(names, string(win.PhysicalDrive(number.Number)))
		}
	}
	if len(paths) < len(wanted) {
		return nil, nil, errors.Join(failures...)
	}
	return paths, names, nil
}

// numbersOf returns the numbers of the disks of a device; none if it is gone.
func (b *Machine) numbersOf(ctx context.Context, device string) (numbers []uint32, err error) {
	if number, err := strconv.ParseUint(strings.TrimPrefix(device, numberPrefix), 10, 32); err == nil {
		return []uint32{uint32(number)}, nil
	}
	id, isVolume := win.ParseVolumeID(device)
	if !isVolume {
		number, err := b.DeviceNumber(ctx, win.Device(device))
		if err != nil || number.Type != win.DeviceTypeDisk {
			return nil, ignoreAnswer(err)
		}
		return []uint32{number.Number}, nil
	}
	extents, err := b.VolumeExtents(ctx, id)
	for _, extent := range extents {
		if !slices.Contains(numbers, extent.Disk) {
			numbers = append(numbers, extent.Disk)
		}
	}
	return numbers, ignoreAnswer(err)
}

// ignoreAnswer returns nil for what Windows has answered: there is no such device, or it is on no disk.
func ignoreAnswer(err error) error {
	if winerr.CodeOf(err) == 0 {
		return err
	}
	return nil
}

func isDevice(object string) bool { return strings.HasPrefix(object, `\\`) }

// isNumber reports whether a device is a disk by its number, which another one can get.
func isNumber(device string) bool { return strings.HasPrefix(device, numberPrefix) }

const numberPrefix = `\\.\PhysicalDrive`

// replaced reports whether a stuck call delays others on its object no longer, because the object is on another disk now:
// a number was given to another one, or the disk of a volume has left and come back.
func (b *Machine) replaced(ctx context.Context, c *call) bool {
	if c == nil || ctx.Value(locating{}) != nil || !isDevice(c.at.Object) || !b.locate(ctx, c) {
		return false
	}
	now, _, err := b.disksOf(ctx, c.at.Object)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || len(now) == 0 || len(c.disks) == 0 || overlap(now, c.disks) {
		return false
	}
	b.leave(c)
	return true
}

// StuckChange implements win.Pending.
func (b *Machine) StuckChange(ctx context.Context, object string) (oldest win.StuckError, found bool) {
	b.mu.Lock()
	changes := slices.Clone(b.changes)
	b.mu.Unlock()
	for _, c := range changes {
		if c.path == "" || c.path != object {
			continue
		}
		if oldest, found = b.describe(c, object, nil, false); found {
			return oldest, true
		}
	}
	going := slices.DeleteFunc(slices.Clone(changes), func(c *call) bool { return !b.runs(c) || c.change != win.TakingOffline })
	if oldest, found = b.goesOffline(ctx, object, going); found {
		return oldest, true
	}
	changes = slices.DeleteFunc(changes, b.runs)
	if len(changes) == 0 {
		return oldest, false
	}
	var disks []win.Device
	known := true
	if isDevice(object) {
		var err error
		disks, _, err = b.disksOf(ctx, object)
		known = err == nil
	}
	own := false // a change of the object itself has been found
	for _, c := range changes {
		if isDevice(object) != isDevice(c.object) {
			continue
		}
		located := known && (!isDevice(c.object) || b.locate(ctx, c))
		one, ok := b.describe(c, object, disks, located)
		switch same := c.object == object; {
		case !ok:
		case !found:
			oldest, found, own = one, true, same
		case same == own:
			oldest.Silent = min(oldest.Silent, one.Silent)
		case same:
			oldest.Silent, own = one.Silent, true
		}
	}
	return oldest, found
}

func (b *Machine) runs(c *call) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return c.abandoned.IsZero()
}

// goesOffline is StuckChange for disks that go offline now. While the request runs, its number is that of the disk.
func (b *Machine) goesOffline(ctx context.Context, object string, going []*call) (win.StuckError, bool) {
	if len(going) == 0 || !isDevice(object) {
		return win.StuckError{}, false
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, locating{}, true), locateLimit)
	defer cancel()
	numbers, err := b.numbersOf(ctx, object)
	for _, c := range going {
		theirs, failure := b.numbersOf(ctx, c.object)
		same := slices.ContainsFunc(theirs, func(number uint32) bool { return slices.Contains(numbers, number) })
		if same || err != nil || failure != nil {
			return b.describe(c, object, nil, false)
		}
	}
	return win.StuckError{}, false
}

// describe describes a change if it is of an object or its disks. Where Windows does not say where they are, it may be.
func (b *Machine) describe(c *call, object string, disks []win.Device, located bool) (win.StuckError, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.done:
		return win.StuckError{}, false
	default:
	}
	byName := c.at.Kind == win.FormatDisk // the storage service finds the volume also if its disk has left and come back
	same := c.object == object && (byName || len(disks) == 0 || len(c.disks) == 0)
	if located && !same && !overlap(disks, c.disks) {
		return win.StuckError{}, false
	}
	name := c.object
	if _, isVolume := win.ParseVolumeID(name); isVolume {
		name = "volume " + name
	} else if len(c.names) == 1 {
		name = c.names[0]
	}
	name = strings.Replace(name, numberPrefix, "disk ", 1)
	found := win.StuckError{Doing: fmt.Sprintf(c.change, name), Since: time.Since(c.begun)}
	switch {
	case c.abandoned.IsZero() || !located: // nothing is known of its silence
	case c.answered.After(c.abandoned):
		found.Silent = time.Since(c.answered)
	default:
		found.Silent = time.Since(c.abandoned)
	}
	return found, true
}

// noteAnswer notes that a disk has answered a call. What drivers and file systems may know without it shows nothing. mu is
// held.
func (b *Machine) noteAnswer(c *call) {
	if !slices.Contains([]win.Kind{win.ReadDisk, win.Flush, win.ChangeDisk, win.FormatDisk}, c.at.Kind) || c.change == win.RereadingTable {
		return
	}
	for _, other := range b.changes {
		if other.object == c.at.Object || slices.Contains(other.names, c.at.Object) || slices.Contains(other.disks, win.Device(c.at.Object)) {
			other.answered = time.Now()
		}
	}
}

func overlap(a, b []win.Device) bool {
	return slices.ContainsFunc(a, func(d win.Device) bool { return slices.Contains(b, d) })
}
