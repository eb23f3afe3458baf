package bounds_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/testing/require"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/bounds"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	maxWait = time.Second
	volume  = win.VolumeID(`\\?\Volume{00000000-0000-0000-0000-000000000001}\`)
	path1   = win.Device(`\\?\scsi#disk#first`)
	path2   = win.Device(`\\?\scsi#disk#second`)
)

var disk3 = win.PhysicalDrive(3)

// windows is a machine whose calls hang on demand.
type windows struct {
	win.Machine // nil: all but the directories is answered in front of it

	mu      sync.Mutex
	hung    map[string]chan struct{} // by an object, or a method and an object
	calls   []string                 // that have begun: "Method object"
	running int
	most    int                   // at once
	disks   map[win.Device]uint32 // by interface path
	volumes map[win.VolumeID]uint32
	open    int // directories
	undone  []string
	fail    func(c *win.Call) error
}

// newWindows has disk 3, with a volume.
func newWindows() (*windows, *bounds.Machine) {
	w := &windows{hung: map[string]chan struct{}{}, disks: map[win.Device]uint32{path1: 3}, volumes: map[win.VolumeID]uint32{volume: 3}}
	return w, bounds.New(win.Intercept(w, w.answer), nil, nil)
}

func (w *windows) answer(ctx context.Context, c *win.Call, next func(context.Context) error) error {
	object := strings.TrimSuffix(c.HangsOn().Object, `\`) // of a path's target, too
	w.mu.Lock()
	w.calls = append(w.calls, c.Method+" "+object)
	w.running++
	w.most = max(w.most, w.running)
	hung := w.hung[object]
	if hung == nil {
		hung = w.hung[c.Method+" "+object]
	}
	fail := w.fail
	w.mu.Unlock()
	if hung != nil {
		<-hung
	}
	if ctx.Done() != nil {
		panic("Windows knows no contexts")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	if fail != nil {
		if err := fail(c); err != nil {
			return err
		}
	}
	switch result := c.Result.(type) {
	case *[]win.Device:
		for device := range w.disks {
			*result = append(*result, device)
		}
	case *win.DeviceNumber:
		for device, number := range w.disks {
			if object == string(device) || object == string(win.PhysicalDrive(number)) {
				*result = win.DeviceNumber{Type: win.DeviceTypeDisk, Number: number}
				return nil
			}
		}
		return winerr.FileNotFound
	case *[]win.Extent:
		number, ok := w.volumes[c.Args()[0].Value.(win.VolumeID)]
		if !ok {
			return winerr.FileNotFound
		}
		*result = []win.Extent{{Disk: number}}
	case *win.FileInfo:
		*result = win.FileInfo{Directory: true}
	case *[]byte:
		*result = []byte("data")
	default:
		if slices.Contains([]string{"OpenDirectory", "Open", "ListDirectory", "SetMountPoint", "DeleteMountPoint"}, c.Method) {
			return next(ctx)
		}
	}
	return nil
}

// directory is an open one. The mutex of the machine is held, except in Close.
type directory struct {
	win.Directory
	w *windows
}

func (w *windows) OpenDirectory(context.Context, win.Path) (win.Directory, error) {
	w.open++
	return directory{w: w}, nil
}

func (d directory) Open(context.Context, string) (win.Directory, error) {
	d.w.open++
	return d, nil
}

func (d directory) ListDirectory(context.Context, string) (win.Listing, error) {
	d.w.open++
	return d, nil
}

func (directory) Next(context.Context) ([]win.DirEntry, error) { return nil, nil }

func (directory) SetMountPoint(context.Context, string, win.VolumeID) error { return nil }

func (d directory) DeleteMountPoint(_ context.Context, name string) error {
	d.w.undone = append(d.w.undone, name)
	return nil
}

func (d directory) Close() {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.open--
}

func (w *windows) opened() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open
}

// begun is how many calls have begun whose text begins so.
func (w *windows) begun(text string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, call := range w.calls {
		if strings.HasPrefix(call, text) {
			n++
		}
	}
	return n
}

// hang makes an object hang until the function that it returns is called, or the test ends.
func (w *windows) hang(t *testing.T, object string) (heal func()) {
	t.Helper()
	back := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hung[object] = back
	heal = sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.hung, object)
		close(back)
	})
	t.Cleanup(heal)
	return heal
}

// replace lets a disk leave, and another one get its number.
func (w *windows) replace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.disks, w.volumes = map[win.Device]uint32{path2: 3}, map[win.VolumeID]uint32{}
}

// within is a context that ends after d.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// read reads a device.
func read(ctx context.Context, m win.Machine, device win.Device) error {
	_, err := m.ReadDevice(ctx, device, 0, 4)
	return err
}

func info(ctx context.Context, m win.Machine, path string) error {
	_, err := m.FileInfo(ctx, win.Following(path))
	return err
}

// wantLeft checks that a call was abandoned after a second.
func wantLeft(t *testing.T, call func(ctx context.Context) error) {
	t.Helper()
	start := time.Now()
	if err := call(within(t, time.Second)); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
		t.Errorf("%v after %v, want the deadline after 1s", err, time.Since(start))
	}
}

// wantRefused checks that a call was refused after some time.
func wantRefused(t *testing.T, what string, after time.Duration, call func() error) {
	t.Helper()
	start := time.Now()
	if err := call(); !errors.Is(err, win.ErrStuck) || !errors.Is(err, winerr.Unavailable) || time.Since(start) != after {
		t.Errorf("%s: %v after %v, want that it is refused after %v", what, err, time.Since(start), after)
	}
}

// wantAtOnce checks that a call succeeds at once.
func wantAtOnce(t *testing.T, what string, call func() error) {
	t.Helper()
	start := time.Now()
	if err := call(); err != nil || time.Since(start) != 0 {
		t.Errorf("%s: %v after %v, want an answer at once", what, err, time.Since(start))
	}
}

func wantCounts(t *testing.T, m *bounds.Machine, abandoned int64, stuck int) {
	t.Helper()
	if m.Abandoned() != abandoned || m.Stuck() != stuck {
		t.Errorf("%d are abandoned and %d stuck, want %d and %d", m.Abandoned(), m.Stuck(), abandoned, stuck)
	}
}

func TestMachine_Returns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		for _, ctx := range []context.Context{within(t, time.Second), context.WithoutCancel(t.Context())} {
			got, err := m.ReadDevice(ctx, disk3, 0, 4)
			if string(got) != "data" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		}
		w.fail = func(*win.Call) error { return winerr.NotReady }
		if got, err := m.ReadDevice(t.Context(), disk3, 0, 4); got != nil || !errors.Is(err, winerr.NotReady) {
			t.Errorf("%q, %v", got, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := read(ended, m, disk3); !errors.Is(err, context.Canceled) || w.begun("ReadDevice") != 3 {
			t.Errorf("%v, want that the context has ended; %d calls", err, w.begun("ReadDevice"))
		}
		wantCounts(t, m, 0, 0)
	})
}

// TestMachine_Abandons: the caller returns when its context ends, and never sees what comes later. No second call of the kind
// begins on the object; others do.
func TestMachine_Abandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		heal := w.hang(t, "ReadDevice "+string(disk3))
		start := time.Now()
		got, err := m.ReadDevice(within(t, 5*time.Second), disk3, 0, 4)
		if got != nil || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 5*time.Second {
			t.Errorf("%q, %v after %v, want the deadline after 5s", got, err, time.Since(start))
		}
		wantCounts(t, m, 1, 1)
		if err := read(within(t, maxWait/2), m, disk3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call with a shorter deadline: %v, want the deadline", err)
		}
		wantRefused(t, "a second call", maxWait/2, func() error { return read(t.Context(), m, disk3) })
		time.Sleep(time.Minute)
		wantRefused(t, "a later call", 0, func() error { return read(t.Context(), m, disk3) })
		if err := read(t.Context(), m, disk3); err == nil || !strings.Contains(err.Error(), "an earlier call to read a disk or volume has not come back from Windows, since 66 s") {
			t.Errorf("the error is %v", err)
		}
		wantAtOnce(t, "another object", func() error { return read(t.Context(), m, path2) })
		wantAtOnce(t, "another kind", func() error { return m.UpdateDisk(t.Context(), disk3) })
		if w.begun("ReadDevice "+string(disk3)) != 1 {
			t.Error("a second call has begun")
		}
		heal()
		synctest.Wait()
		if got != nil {
			t.Errorf("the caller has got %q late", got)
		}
		wantAtOnce(t, "after it has come back", func() error { return read(t.Context(), m, disk3) })
		wantCounts(t, m, 1, 0)
	})
}

// TestMachine_Waits: a call begins when the stuck one comes back within a second.
func TestMachine_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		heal := w.hang(t, string(disk3))
		wantLeft(t, func(ctx context.Context) error { return read(ctx, m, disk3) })
		time.AfterFunc(maxWait/2, heal)
		start := time.Now()
		if err := read(t.Context(), m, disk3); err != nil || time.Since(start) != maxWait/2 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// TestMachine_OthersReturn: a call waits for a stuck one no longer because others come back.
func TestMachine_OthersReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		var other sync.WaitGroup
		heal := w.hang(t, "ReadDevice "+string(path1))
		other.Go(func() { _ = read(within(t, time.Minute), m, path1) })
		synctest.Wait()
		time.AfterFunc(time.Second+maxWait/2, heal)
		w.hang(t, "ReadDevice "+string(path1))
		wantLeft(t, func(ctx context.Context) error { return read(ctx, m, path1) })
		wantRefused(t, "a second call", maxWait, func() error { return read(t.Context(), m, path1) })
		other.Wait()
	})
}

// TestMachine_FilesOfAVolume: that one file hangs says nothing of the others.
func TestMachine_FilesOfAVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const folder = `C:\var\lib\kubelet\pods\uid\volumes\kubernetes.io~csi\pv\mount`
		w, m := newWindows()
		w.hang(t, folder+`\a`)
		wantLeft(t, func(ctx context.Context) error { return info(ctx, m, folder+`\a`) })
		wantAtOnce(t, "another file", func() error { return info(t.Context(), m, folder+`\b`) })
		wantRefused(t, "the file", maxWait, func() error { return info(t.Context(), m, folder+`\a`) })
	})
}

// TestMachine_CallerCancels lets calls come back and their callers leave at the same moment. The race detector sees whether a
// caller reads what the call writes later.
func TestMachine_CallerCancels(t *testing.T) {
	_, m := newWindows()
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for range 300 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				got, err := m.ReadDevice(ctx, win.PhysicalDrive(uint32(i%2)), 0, 4)
				if (err == nil) != (string(got) == "data") {
					t.Errorf("%q, %v", got, err)
				}
			}
		})
	}
	callers.Wait()
	for i := range 2 { // which waits for those that are left
		require.NoError(t, read(t.Context(), m, win.PhysicalDrive(uint32(i))))
	}
}

// TestMachine_Inspector: the stuck calls of an inspector delay only inspectors.
func TestMachine_Inspector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		back := w.hang(t, string(disk3))
		wantLeft(t, func(ctx context.Context) error { return read(win.AsInspector(ctx), m, disk3) })
		w.mu.Lock()
		delete(w.hung, string(disk3)) // only the first hangs
		w.mu.Unlock()
		wantAtOnce(t, "a driver", func() error { return read(t.Context(), m, disk3) })
		wantRefused(t, "a second inspector", maxWait, func() error { return read(win.AsInspector(t.Context()), m, disk3) })
		wantCounts(t, m, 1, 1)
		back()
	})
}

// TestMachine_OpenedLate: a directory that is opened after its caller has left is closed.
func TestMachine_OpenedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		dir, err := m.OpenDirectory(t.Context(), win.Following(`C:\a`))
		require.NoError(t, err)
		heals := []func(){w.hang(t, `OpenDirectory C:\b`), w.hang(t, `Open C:\a`), w.hang(t, `ListDirectory C:\a`)}
		for i, open := range []func(context.Context) error{
			func(ctx context.Context) error { _, err := m.OpenDirectory(ctx, win.Following(`C:\b`)); return err },
			func(ctx context.Context) error { _, err := dir.Open(ctx, "x"); return err },
			func(ctx context.Context) error { _, err := dir.ListDirectory(ctx, "x"); return err },
		} {
			wantLeft(t, open)
			heals[i]()
			synctest.Wait()
			if w.opened() != 1 {
				t.Errorf("%d: %d directories are open, want 1", i, w.opened())
			}
		}
		if dir.Close(); w.opened() != 0 {
			t.Errorf("%d directories are open", w.opened())
		}
	})
}

// TestMachine_ClosedEarly: a directory that its caller closes stays open under a call that runs.
func TestMachine_ClosedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		dir, err := m.OpenDirectory(t.Context(), win.Following(`C:\a`))
		require.NoError(t, err)
		heal := w.hang(t, `Remove C:\a`)
		wantLeft(t, func(ctx context.Context) error { return dir.Remove(ctx, "x") })
		dir.Close()
		if w.opened() != 1 {
			t.Error("it is closed under the call")
		}
		heal()
		synctest.Wait()
		if w.opened() != 0 {
			t.Error("it stays open")
		}
	})
}

// TestMachine_MountedLate: a mount that is made after its caller has left is taken away again, and until then the call counts
// as stuck.
func TestMachine_MountedLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		dir, err := m.OpenDirectory(t.Context(), win.Following(`C:\a`))
		require.NoError(t, err)
		heal, undo := w.hang(t, `SetMountPoint C:\A\X`), w.hang(t, `DeleteMountPoint C:\A\X`)
		wantLeft(t, func(ctx context.Context) error { return dir.SetMountPoint(ctx, "x", volume) })
		dir.Close()
		heal()
		synctest.Wait()
		stuck, ok := m.StuckChange(t.Context(), string(volume.Device()))
		if wantCounts(t, m, 1, 1); !ok || stuck.Doing != "mounting volume "+string(volume.Device()) || w.opened() != 1 {
			t.Errorf("%q, %v, with %d open directories", stuck.Doing, ok, w.opened())
		}
		undo()
		synctest.Wait()
		if wantCounts(t, m, 1, 0); !slices.Equal(w.undone, []string{"x"}) || w.opened() != 0 {
			t.Errorf("%q were undone, %d directories are open", w.undone, w.opened())
		}
	})
}

// TestMachine_Limits: a few calls run on one object, more on a server and on all files of a volume. The others wait, and are
// refused when nothing moves.
func TestMachine_Limits(t *testing.T) {
	const folder = `C:\var\lib\kubelet\pods\uid\volumes\kubernetes.io~csi\pv\mount`
	for name, c := range map[string]struct {
		object string
		limit  int
		call   func(ctx context.Context, m win.Machine, i int) error
	}{
		"disk": {string(disk3), 16, func(ctx context.Context, m win.Machine, _ int) error { return read(ctx, m, disk3) }},
		"server": {"SERVER", 64, func(ctx context.Context, m win.Machine, i int) error {
			return info(ctx, m, fmt.Sprintf(`\\server\s%d`, i))
		}},
		"file": {folder + `\0`, 16, func(ctx context.Context, m win.Machine, _ int) error { return info(ctx, m, folder+`\0`) }},
		"files": {"", 64, func(ctx context.Context, m win.Machine, i int) error {
			return info(ctx, m, fmt.Sprintf(`%s\%d`, folder, i))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, m := newWindows()
				const callers = 200
				objects := []string{c.object}
				if c.object == "" {
					objects = nil
					for i := range callers {
						objects = append(objects, fmt.Sprintf(`%s\%d`, folder, i))
					}
				}
				var heals []func()
				for _, object := range objects {
					heals = append(heals, w.hang(t, object))
				}
				ctx, cancel := context.WithCancel(t.Context())
				var running, others sync.WaitGroup
				for i := range callers {
					if i < c.limit {
						running.Go(func() {
							if err := c.call(ctx, m, i); !errors.Is(err, context.Canceled) {
								t.Errorf("got %v", err)
							}
						})
						synctest.Wait()
					} else {
						others.Go(func() { wantRefused(t, "one more", maxWait, func() error { return c.call(t.Context(), m, i) }) })
					}
				}
				others.Wait()
				if w.most != c.limit || len(w.calls) != c.limit {
					t.Errorf("%d calls ran, want %d", w.most, c.limit)
				}
				wantRefused(t, "a later one", 0, func() error { return c.call(t.Context(), m, callers-1) })
				wantAtOnce(t, "another object", func() error { return read(t.Context(), m, path2) })
				wantAtOnce(t, "another file", func() error {
					return info(t.Context(), m, `C:\var\lib\kubelet\pods\uid2\volumes\kubernetes.io~csi\pv\mount\0`)
				})
				cancel()
				running.Wait()
				wantCounts(t, m, int64(c.limit), c.limit)
				for _, heal := range heals {
					heal()
				}
				synctest.Wait()
				wantCounts(t, m, int64(c.limit), 0)
				wantAtOnce(t, "after all came back", func() error { return c.call(t.Context(), m, 0) })
			})
		})
	}
}

// TestMachine_Order: those that wait begin in order of arrival, also before one that comes later, and wait for as long as the
// line moves, although its first call is old.
func TestMachine_Order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		w.hang(t, `FileInfo SERVER`) // for ever
		release := make(chan struct{})
		var order []string
		w.fail = func(c *win.Call) error { // with mu held
			if c.Method == "PathSpace" {
				order = append(order, c.Args()[0].Value.(win.Path).String())
			}
			return nil
		}
		w.hung["PathSpace SERVER"] = release // which lets one go on for each value
		var callers sync.WaitGroup
		callers.Go(func() { _ = info(within(t, time.Hour), m, `\\server\slow`) })
		synctest.Wait()
		ask := func(i int) {
			callers.Go(func() {
				if _, err := m.PathSpace(within(t, time.Hour), win.Following(fmt.Sprintf(`\\server\%02d`, i))); err != nil {
					t.Errorf("%d: %v", i, err)
				}
			})
		}
		const atOnce, waiting, later = 63, 20, 15
		for i := range atOnce + waiting {
			ask(i)
			synctest.Wait()
		}
		for i := range atOnce + waiting + later {
			time.Sleep(maxWait * 3 / 4)
			release <- struct{}{}
			if i < later { // it does not begin before those that wait
				ask(atOnce + waiting + i)
			}
			synctest.Wait()
		}
		if got := w.begun("PathSpace SERVER"); got != atOnce+waiting+later || len(order) != got || w.most != 64 {
			t.Errorf("%d calls, %d done, %d at once", got, len(order), w.most)
		}
		if !slices.IsSorted(order[atOnce:]) {
			t.Errorf("the order is %q", order[atOnce:])
		}
		time.Sleep(time.Hour)
		callers.Wait()
	})
}

// TestMachine_ManyWithoutDeadline: a thousand callers without a deadline of one hung object delay no other, and few calls run.
func TestMachine_ManyWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		heal := w.hang(t, string(volume.Device()))
		start := time.Now()
		var callers sync.WaitGroup
		for range 1000 {
			callers.Go(func() {
				if _, err := m.VolumeSpace(t.Context(), volume); err == nil || time.Since(start) > 2*time.Minute {
					t.Errorf("%v after %v", err, time.Since(start))
				}
			})
		}
		for range 130 {
			synctest.Wait()
			wantAtOnce(t, "another volume", func() error { _, err := m.VolumeSpace(t.Context(), `\\?\Volume{other}\`); return err })
			wantAtOnce(t, "a disk", func() error { return read(t.Context(), m, disk3) })
			wantAtOnce(t, "a file", func() error { return info(t.Context(), m, `C:\a`) })
			time.Sleep(time.Second)
		}
		callers.Wait()
		if got := w.begun("VolumeSpace " + string(volume.Device())); got != 16 {
			t.Errorf("%d calls have begun, want 16", got)
		}
		wantCounts(t, m, 16, 16)
		heal()
		synctest.Wait()
		wantCounts(t, m, 16, 0)
	})
}

// TestMachine_NoDeadline: a question ends after 2 minutes, a change after 15.
func TestMachine_NoDeadline(t *testing.T) {
	for want, call := range map[time.Duration]func(context.Context, win.Machine) error{
		2 * time.Minute:  func(ctx context.Context, m win.Machine) error { return read(ctx, m, disk3) },
		15 * time.Minute: func(ctx context.Context, m win.Machine) error { return m.UpdateDisk(ctx, disk3) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w, m := newWindows()
			w.hang(t, "ReadDevice "+string(disk3))
			w.hang(t, "UpdateDisk "+string(disk3))
			start := time.Now()
			err := call(t.Context(), m)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer from Windows") || time.Since(start) != want {
				t.Errorf("%v after %v, want the deadline after %v", err, time.Since(start), want)
			}
			wantCounts(t, m, 1, 1)
		})
	}
}

// TestMachine_DeadArray: forty objects that hang stop no other.
func TestMachine_DeadArray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		var callers sync.WaitGroup
		for i := range uint32(40) {
			dead := win.PhysicalDrive(100 + i)
			w.hang(t, "ReadDevice "+string(dead))
			for range 16 {
				callers.Go(func() { wantLeft(t, func(ctx context.Context) error { return read(ctx, m, dead) }) })
			}
		}
		callers.Wait()
		wantCounts(t, m, 640, 640)
		wantAtOnce(t, "another disk", func() error { return read(t.Context(), m, disk3) })
		synctest.Wait()
	})
}

// TestMachine_MaxThreads: calls are refused before they have more threads than a program may have, until others return.
func TestMachine_MaxThreads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		const most = 100
		m.SetMost(most)
		file := func(i int) string { return fmt.Sprintf(`C:\volume\%d`, i) }
		var callers sync.WaitGroup
		var heal func()
		for i := range most {
			heal = w.hang(t, file(i))
			callers.Go(func() { wantLeft(t, func(ctx context.Context) error { return info(ctx, m, file(i)) }) })
		}
		callers.Wait()
		wantCounts(t, m, most, most)
		wantRefused(t, "one more", 0, func() error { return info(t.Context(), m, file(most)) })
		heal()
		synctest.Wait()
		wantAtOnce(t, "when one has returned", func() error { return info(t.Context(), m, file(most)) })
	})
}

// TestStuckChange: a change that is stuck is known by each name of its disk, and forgotten when it returns.
func TestStuckChange(t *testing.T) {
	online := func(ctx context.Context, m win.Machine) error {
		return m.SetDiskAttributes(ctx, disk3, win.DiskAttributes{}, win.DiskAttributes{Offline: true})
	}
	for name, c := range map[string]struct {
		hung  string
		doing string
		call  func(ctx context.Context, m win.Machine) error
	}{
		"by number":         {"SetDiskAttributes " + string(disk3), "bringing disk 3 online", online},
		"by interface path": {"UpdateDisk " + string(path1), "reading the table of disk 3 again", func(ctx context.Context, m win.Machine) error { return m.UpdateDisk(ctx, path1) }},
		"a volume":          {"FlushVolume " + string(volume.Device()), "writing the cache of volume " + string(volume.Device()), func(ctx context.Context, m win.Machine) error { return m.FlushVolume(ctx, volume) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, m := newWindows()
				w.disks[path2] = 4
				names := []string{string(disk3), string(path1), string(volume.Device())}
				heal := w.hang(t, c.hung)
				for _, object := range names {
					if _, ok := m.StuckChange(t.Context(), object); ok {
						t.Errorf("%s is stuck before", object)
					}
				}
				wantLeft(t, func(ctx context.Context) error { return c.call(ctx, m) })
				time.Sleep(39 * time.Second)
				for _, object := range names {
					got, ok := m.StuckChange(t.Context(), object)
					if want := (win.StuckError{Doing: c.doing, Since: 40 * time.Second, Silent: 39 * time.Second}); !ok || got != want {
						t.Errorf("%s: %+v, %v, want %+v", object, got, ok, want)
					}
					if want := c.doing + ", since 40 s, has not come back from Windows"; got.Error() != want {
						t.Errorf("%q, want %q", got.Error(), want)
					}
				}
				for _, object := range []string{string(path2), string(win.PhysicalDrive(4)), "1-2"} {
					if got, ok := m.StuckChange(t.Context(), object); ok {
						t.Errorf("%s: %+v", object, got)
					}
				}
				heal()
				synctest.Wait()
				for _, object := range names {
					if got, ok := m.StuckChange(t.Context(), object); ok {
						t.Errorf("%s, after it has returned: %+v", object, got)
					}
				}
			})
		})
	}
}

// TestStuckChange_Question: what changes nothing is not named, nor what its caller waits for.
func TestStuckChange_Question(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		w.hang(t, "ReadDevice "+string(disk3))
		heal := w.hang(t, "UpdateDisk "+string(disk3))
		wantLeft(t, func(ctx context.Context) error { return read(ctx, m, disk3) })
		var caller sync.WaitGroup
		caller.Go(func() { _ = m.UpdateDisk(within(t, time.Hour), disk3) })
		synctest.Wait()
		if got, ok := m.StuckChange(t.Context(), string(disk3)); ok {
			t.Errorf("%+v", got)
		}
		heal()
		caller.Wait()
	})
}

// TestStuckChange_Silenced: a disk that does not even say its number keeps no other disk.
func TestStuckChange_Silenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		w.disks[path2] = 4
		w.hang(t, string(path1))
		wantLeft(t, func(ctx context.Context) error { return m.UpdateDisk(ctx, path1) })
		for object, stuck := range map[win.Device]bool{path1: true, path2: false, win.PhysicalDrive(4): false} {
			if got, ok := m.StuckChange(t.Context(), string(object)); ok != stuck {
				t.Errorf("%s: %+v, %v", object, got, ok)
			}
		}
	})
}

// TestStuckChange_Session is known by its id.
func TestStuckChange_Session(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		id := win.SessionID{AdapterUnique: 1, AdapterSpecific: 2}
		w.hang(t, id.String())
		wantLeft(t, func(ctx context.Context) error { return m.Logout(ctx, id) })
		if got, ok := m.StuckChange(t.Context(), "1-2"); !ok || got.Doing != "logging out of the session 1-2" {
			t.Errorf("%+v, %v", got, ok)
		}
		if got, ok := m.StuckChange(t.Context(), "1-3"); ok {
			t.Errorf("another session: %+v", got)
		}
	})
}

// TestStuckChange_Replaced: a disk that has left says nothing of the one that has its number now.
func TestStuckChange_Replaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		update := "UpdateDisk " + string(disk3)
		heal := w.hang(t, update)
		wantLeft(t, func(ctx context.Context) error { return m.UpdateDisk(ctx, disk3) })
		synctest.Wait()
		wantRefused(t, "the same disk", maxWait, func() error { return m.UpdateDisk(t.Context(), disk3) })
		w.replace()
		w.mu.Lock()
		delete(w.hung, update)
		w.mu.Unlock()
		for _, object := range []string{string(disk3), string(path2)} {
			if got, ok := m.StuckChange(t.Context(), object); ok {
				t.Errorf("%s: %+v", object, got)
			}
		}
		wantAtOnce(t, "the new disk", func() error { return m.UpdateDisk(t.Context(), disk3) })
		wantCounts(t, m, 1, 1)
		heal()
		synctest.Wait()
		wantCounts(t, m, 1, 0)
		wantAtOnce(t, "the new disk again", func() error { return m.UpdateDisk(t.Context(), disk3) })
	})
}

// TestStuckChange_Format: the storage service may still find a volume whose disk has left and come back, and must not format
// it then after another format.
func TestStuckChange_Format(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		heal := w.hang(t, "Format "+string(volume.Device()))
		wantLeft(t, func(ctx context.Context) error { return m.Format(ctx, volume, win.FormatOptions{}) })
		synctest.Wait()
		w.mu.Lock()
		w.disks = map[win.Device]uint32{path2: 3}
		w.mu.Unlock()
		if _, ok := m.StuckChange(t.Context(), string(volume.Device())); !ok {
			t.Error("the volume may be formatted again")
		}
		if got, ok := m.StuckChange(t.Context(), string(disk3)); ok {
			t.Errorf("the disk: %+v", got)
		}
		heal()
	})
}

// TestStuckChange_Silent counts from the last answer of the disk, not from what drivers and file systems remember.
func TestStuckChange_Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		w.hang(t, "FlushVolume "+string(volume.Device()))
		wantLeft(t, func(ctx context.Context) error { return m.FlushVolume(ctx, volume) })
		timesOut := func() error { // Windows has given up
			w.fail = func(*win.Call) error { return winerr.SemTimeout }
			defer func() { w.fail = nil }()
			if err := read(t.Context(), m, disk3); !errors.Is(err, winerr.SemTimeout) {
				return fmt.Errorf("want %w: %w", winerr.SemTimeout, err)
			}
			return nil
		}
		for i, c := range []struct {
			answers bool
			call    func() error
		}{
			{true, func() error { return read(t.Context(), m, disk3) }},
			{true, func() error { return read(t.Context(), m, path1) }},
			{false, func() error { _, err := m.VolumeSpace(t.Context(), volume); return err }}, // NTFS may know it
			{false, func() error { _, err := m.DeviceNumber(t.Context(), disk3); return err }},
			{false, func() error { _, err := m.VolumeExtents(t.Context(), volume); return err }},
			{false, func() error { return read(t.Context(), m, path2) }},
			{false, func() error { return m.UpdateDisk(t.Context(), disk3) }},
			{false, timesOut},
		} {
			time.Sleep(time.Minute)
			before, _ := m.StuckChange(t.Context(), string(volume.Device()))
			wantAtOnce(t, fmt.Sprint(i), c.call)
			got, ok := m.StuckChange(t.Context(), string(volume.Device()))
			want := before.Silent
			if c.answers {
				want = 0
			}
			if !ok || got.Silent != want || got.Since != time.Second+time.Duration(i+1)*time.Minute {
				t.Errorf("%d: %+v, %v, want a silence of %v", i, got, ok, want)
			}
		}
	})
}

// TestMachine_Panics: a panic is the call's error, and the log has the stack, also of a call whose caller has left.
func TestMachine_Panics(t *testing.T) {
	for name, hangs := range map[string]bool{"the caller waits": false, "the caller has left": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, m := newWindows()
				var mu sync.Mutex
				var log strings.Builder
				ctx := klog.NewContext(within(t, time.Second), funcr.New(func(_, args string) {
					mu.Lock()
					defer mu.Unlock()
					log.WriteString(args)
				}, funcr.Options{}))
				w.fail = func(*win.Call) error { panic("made of cheese") }
				heal := func() {}
				if hangs {
					heal = w.hang(t, string(path2))
				}
				if err := read(ctx, m, path2); !hangs && (err == nil || !strings.Contains(err.Error(), "panic: made of cheese")) {
					t.Errorf("%v, want the panic", err)
				}
				heal()
				synctest.Wait()
				if !strings.Contains(log.String(), "TestMachine_Panics") || m.Stuck() != 0 {
					t.Errorf("the log is %q, want the stack of the panic; %d are stuck", log.String(), m.Stuck())
				}
				w.fail = nil
				wantAtOnce(t, "the next call", func() error { return read(t.Context(), m, path2) })
			})
		})
	}
}

func TestMachine_Observe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type observation struct {
			kind    win.Kind
			elapsed time.Duration
			err     error
		}
		w, m := newWindows()
		var got []observation
		m.Observe(func(kind win.Kind, elapsed time.Duration, err error) {
			got = append(got, observation{kind, elapsed, err})
		})
		heal := w.hang(t, "ReadDevice "+string(disk3))
		time.AfterFunc(time.Second/2, heal)
		_ = read(t.Context(), m, disk3)
		w.fail = func(*win.Call) error { return winerr.NotReady }
		_ = m.UpdateDisk(win.AsInspector(t.Context()), disk3)
		w.fail = nil
		w.hang(t, `FileInfo C:\dead`)
		wantLeft(t, func(ctx context.Context) error { return info(ctx, m, `C:\dead`) })
		wantRefused(t, "a second", maxWait, func() error { return info(t.Context(), m, `C:\dead`) })
		m.Observe(nil)
		_ = read(t.Context(), m, disk3)

		want := []observation{
			{win.ReadDisk, time.Second / 2, nil},
			{win.ChangeDisk, 0, winerr.NotReady},
			{win.ReachFile, time.Second, context.DeadlineExceeded},
			{win.ReachFile, maxWait, win.ErrStuck},
		}
		if len(got) != len(want) {
			t.Fatalf("it observed %v, want %v", got, want)
		}
		for i, w := range want {
			if got[i].kind != w.kind || got[i].elapsed != w.elapsed || !errors.Is(got[i].err, w.err) {
				t.Errorf("observation %d is %v, want %v", i, got[i], w)
			}
		}
	})
}

// TestMachine_Process: another process has bounds of its own on the same machine.
func TestMachine_Process(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, m := newWindows()
		heal := w.hang(t, "UpdateDisk "+string(disk3))
		wantLeft(t, func(ctx context.Context) error { return m.UpdateDisk(ctx, disk3) })
		var calls atomic.Int32
		other := m.Process(func(ctx context.Context, _ *win.Call, next func(context.Context) error) error {
			calls.Add(1)
			return next(ctx)
		})
		wantLeft(t, func(ctx context.Context) error { return other.UpdateDisk(ctx, disk3) })
		if calls.Load() == 0 || w.begun("UpdateDisk") != 2 {
			t.Errorf("%d calls, %d below", calls.Load(), w.begun("UpdateDisk"))
		}
		wantCounts(t, m, 1, 1)
		heal()
		synctest.Wait()
		if _, ok := other.StuckChange(t.Context(), string(disk3)); ok {
			t.Error("the other's is stuck")
		}
	})
}

// TestMachine_Prompt: calls that return at once get no goroutine, and their own context.
func TestMachine_Prompt(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, true)
	var got context.Context
	m := bounds.New(&windows{}, func(ctx context.Context, _ *win.Call, _ func(context.Context) error) error {
		got = ctx
		return nil
	}, func(c *win.Call) bool { return c.Method == "ReadDevice" })
	if _ = read(ctx, m, disk3); got != ctx {
		t.Error("it has another context")
	}
	if _ = m.UpdateDisk(ctx, disk3); got == ctx || got.Value(key{}) == nil {
		t.Error("another method has that context, too")
	}
}
