package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/diskprobe"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/lostvolume"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/queue"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// host is a machine with volumes. Its methods are those of HostAPI with a context.
type host struct {
	m win.Machine
	*machineState
	formatOver bool
	onLoss     func(text string) // may be nil
	limits     *policy.Policy    // what callers may touch
}

// machineState is what all hosts of a machine share.
type machineState struct {
	changes queue.Queues[work]
	lost    lostvolume.Finder
	// unflushed are the volumes that UnmountVolume left mounted because their disk failed to take
	// what was cached, and those that flushMounted has flushed. Each other flush that succeeds, and each unmount, takes its volume out.
	unflushed sync.Map // of lastFlush, by win.VolumeID
}

// work names a change to a volume. Callers that want the same change can share one run of
// it, and its result.
type work struct {
	op     string
	volume win.VolumeID
	path   string         // where to mount or unmount
	limits *policy.Policy // of the callers
	size   int64          // to grow to
	over   bool           // format over existing content
	format formatSettings
	fresh  bool // only callers that come before it begins can share it
}

// Objects implements queue.Change: a volume, and the folder at which it is mounted.
func (w work) Objects() []string {
	objects := []string{string(w.volume)}
	if w.path != "" {
		objects = append(objects, winpath.Fold(w.path))
	}
	return objects
}

func (w work) Fresh() bool { return w.fresh }

// workLimit bounds a change whose callers may all have left. Windows may need minutes to
// flush to a slow disk; nothing else takes that long.
const workLimit = 10 * time.Minute

// files leads to the machine's files within the limits.
func (h host) files() policy.Reach { return h.limits.Reach(h.m) }

// change does something to a volume when it is its turn. A caller whose context ends
// returns at once. A change that has begun by then goes on, and later changes wait for it:
// a request to Windows cannot be taken back, and must not be made twice. A change that has
// not begun is dropped, unless other callers wait for it.
func (h host) change(ctx context.Context, w work, do func(ctx context.Context) error) error {
	return winerr.Wrap(w.op, w.object(), h.changes.Do(ctx, w, workLimit, do))
}

// changePause is how long a change may take before the disk must show that it answers.
const changePause = 10 * time.Second

// changeContent is change for what needs the disk. It is refused while another such change is stuck.
func (h host) changeContent(ctx context.Context, w work, do func(ctx context.Context) error) error {
	return h.change(ctx, w, func(ctx context.Context) error {
		if err := diskprobe.Refuse(ctx, h.m, w.op, w.object(), w.volume.Device()); err != nil {
			return err
		}
		return h.watch(ctx, w.op, w.volume, do)
	})
}

// watch does something for as long as the disks of a volume answer.
func (h host) watch(ctx context.Context, op string, id win.VolumeID, do func(ctx context.Context) error) error {
	return diskprobe.Watch(ctx, h.m, changePause, func(ctx context.Context) ([]uint32, error) { return h.disksOf(ctx, op, id) }, do)
}

// Exclusively does something about the folder of a volume when it is its turn.
func (b boundHost) Exclusively(ctx context.Context, volumeID, path string, do func(ctx context.Context) error) error {
	const op = "check mounted folder"
	id, err := parseID(op, volumeID)
	if err != nil {
		return err
	}
	return b.host.change(ctx, work{op: op, volume: id, path: path, limits: b.host.limits, fresh: true}, do)
}

func (w work) object() string {
	if w.path == "" {
		return string(w.volume)
	}
	return string(w.volume) + " at " + w.path
}

// settleBackoff is how long Windows gets to notice what happened to a disk or volume, or to
// show what it was asked to do. Usually it needs a fraction of a second.
var settleBackoff = win.Backoff{First: 20 * time.Millisecond, Longest: 500 * time.Millisecond, Limit: 10 * time.Second, Quarter: true}

// poll tries until it is done or Windows had its time; done is false then.
func (h host) poll(ctx context.Context, try func() (done bool, err error)) (done bool, err error) {
	return win.Poll(ctx, h.m, settleBackoff, func(time.Duration) (bool, error) { return try() })
}

// parseID checks the volume id of a request. Every method starts with it, because no other
// check protects the machine: package volume passes any id on that is not empty, and
// drivers also call this host directly.
func parseID(op, text string) (win.VolumeID, error) {
	id, ok := win.ParseVolumeID(text)
	if !ok {
		return "", winerr.New(winerr.Invalid, op, "",
			`%.100q is not a volume id; an id looks like \\?\Volume{GUID}\, and ListVolumesOnDisk and GetVolumeIDFromTargetPath return it`, text)
	}
	return id, nil
}

func failed(op string, id win.VolumeID, err error) error {
	switch code := winerr.CodeOf(err); {
	case code == winerr.NotReady:
		return winerr.As(winerr.Unavailable, op, string(id), err, "its disk may be offline; bring it online with SetDiskState")
	case code == winerr.UnrecognizedVolume:
		return winerr.As(winerr.InUse, op, string(id), err, "create one with FormatVolume")
	case code == winerr.AccessDenied:
		return winerr.As(winerr.Denied, op, string(id), err, "another process may have locked it, as a repair or a format does")
	case code == winerr.FVELocked:
		return winerr.As(winerr.InUse, op, string(id), err, "unlock it first")
	case errors.Is(err, winerr.NotFound):
		return winerr.As(winerr.NotFound, op, string(id), err, "the volume is gone, or its disk is offline")
	default:
		return winerr.Wrap(op, string(id), err)
	}
}

// answered reports whether err is an answer of Windows, rather than the end of the caller's
// context or a system that is not Windows.
func answered(err error) bool { return winerr.CodeOf(err) != 0 }
