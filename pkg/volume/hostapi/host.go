package api

import (
	"context"
	"errors"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/host/policy"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/queue"
)

// host implements HostAPI over the seam.
type host struct {
	m          win.Machine
	shared     *shared
	formatOver bool
	limits     *policy.Policy  // of what its callers may touch
	ctx        context.Context //nolint:containedctx // HostAPI's published methods take none, see WithContext
}

// shared is what all hosts of a machine must have in common. The zero value is ready.
type shared struct {
	changes queue.Queues[work]
}

// work names a change to a volume. Callers who want the same may share one run of it, and
// its result.
type work struct {
	op     string
	volume win.VolumeID
	path   string         // where to mount or unmount
	limits *policy.Policy // of those who want it
	size   int64          // to grow to
	over   bool           // format over what is there
	fresh  bool           // shared only by those who come before it begins
}

// Objects implements queue.Change: a volume, and the folder at which it is mounted.
func (w work) Objects() []string {
	objects := []string{string(w.volume)}
	if w.path != "" {
		objects = append(objects, winpath.Fold(w.path))
	}
	return objects
}

// Fresh implements queue.Change.
func (w work) Fresh() bool { return w.fresh }

// workLimit bounds a change whose callers may all have left. Windows may need minutes to
// flush to a slow disk; nothing of ours takes that long.
const workLimit = 10 * time.Minute

// WithContext returns the same host, its calls bounded by ctx.
func (h host) WithContext(ctx context.Context) HostAPI {
	h.ctx = ctx
	return h
}

// Within returns the same host, limited by a policy.
func (h host) Within(p *policy.Policy) HostAPI {
	h.limits = p
	return h
}

// files is the way to the machine's files.
func (h host) files() policy.Reach { return h.limits.Reach(h.m) }

// change does something to a volume when it is its turn. A caller whose context ends
// leaves at once. What has begun by then goes on and keeps others waiting until it has
// really ended: what Windows was asked to do cannot be called back, and must not be asked
// for twice. What has not begun never does, if nobody else waits for it.
func (h host) change(w work, do func(ctx context.Context) error) error {
	return winerr.Wrap(w.op, w.object(), h.shared.changes.Do(h.ctx, w, workLimit, do))
}

func (w work) object() string {
	if w.path == "" {
		return string(w.volume)
	}
	return string(w.volume) + " at " + w.path
}

// patience is how long Windows may take to notice what has happened to a disk or volume,
// or to show what it was told to do. Usually that is a fraction of a second.
const patience = 10 * time.Second

// poll tries until it is done, with growing pauses, and gives up when the pauses add up to
// our patience; done is false then.
func (h host) poll(ctx context.Context, try func() (done bool, err error)) (done bool, err error) {
	const longest = 500 * time.Millisecond
	for waited, pause := time.Duration(0), 20*time.Millisecond; ; pause = min(2*pause, longest) {
		if done, err = try(); done || err != nil || waited >= patience {
			return done, err
		}
		if err := h.m.Sleep(ctx, pause); err != nil {
			return false, err
		}
		waited += pause
	}
}

// parseID reads the volume id of a request. It is the only way for an id to get near a
// call: one known driver sends a disk number in its place.
func parseID(op, text string) (win.VolumeID, error) {
	id, ok := win.ParseVolumeID(text)
	if !ok {
		return "", winerr.New(winerr.Invalid, op, "",
			`%.100q is not a volume id; an id looks like \\?\Volume{GUID}\, and ListVolumesOnDisk and GetVolumeIDFromTargetPath return it`, text)
	}
	return id, nil
}

// failed describes a failed call on a volume.
func failed(op string, id win.VolumeID, err error) error {
	switch code := winerr.CodeOf(err); {
	case code == winerr.NotReady:
		return winerr.As(winerr.Unavailable, op, string(id), err, "its disk may be offline; SetDiskState takes it online")
	case code == winerr.UnrecognizedVolume:
		return winerr.As(winerr.InUse, op, string(id), err, "FormatVolume makes one")
	case code == winerr.FVELocked:
		return winerr.As(winerr.InUse, op, string(id), err, "unlock it first")
	case errors.Is(err, winerr.NotFound):
		return winerr.As(winerr.NotFound, op, string(id), err, "the volume is gone, or its disk is offline")
	default:
		return winerr.Wrap(op, string(id), err)
	}
}

// answered reports whether err is an answer of Windows, rather than the end of the
// caller's patience or a machine that cannot be asked at all.
func answered(err error) bool { return winerr.CodeOf(err) != 0 }
