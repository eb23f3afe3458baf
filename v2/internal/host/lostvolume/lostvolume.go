// Package lostvolume decides whether a volume that a mounted folder names is certainly gone, such as that of a disk that
// was torn away. Its mount is then nothing that a driver could unmount or a pod could use. A volume that only does not
// answer, whose disk is offline or has not arrived yet, or whose iSCSI session is interrupted, is not gone.
package lostvolume

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/shared"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	// SettleTime is how long Windows gets after a rescan to show new disks and volumes.
	SettleTime = 5 * time.Second

	// objectLimit is how long one disk or volume may take.
	objectLimit = 5 * time.Second

	// adapterLimit is how long one adapter may take to look for disks, and rescanLimit all.
	adapterLimit = time.Minute
	rescanLimit  = 3 * time.Minute

	// rescanPause is from one rescan to the next. It makes Windows look at all ports of all adapters, which delays disks
	// that arrive.
	rescanPause = time.Minute

	// gather is how long callers have to join the first search. When a node loses its disks, drivers ask for many.
	gather = 2 * time.Millisecond
)

// Finder finds out which volumes of a machine are gone. Callers share its searches.
type Finder struct {
	searches *shared.Answers[struct{}, Storage]
	rescans  *rescans
}

// NewFinder returns a Finder. Each machine needs its own.
func NewFinder() Finder {
	return Finder{shared.New[struct{}, Storage](gather, 2*SettleTime), &rescans{}}
}

// ThisMachine is shared by all hosts of the machine this program runs on.
var ThisMachine = NewFinder()

// Volume reports whether a volume is certainly gone. For one that exists it makes one call, which needs no access to
// the disk. For another it looks at all disks and volumes, twice, with a rescan between if one is due. It fails only if
// ctx ends.
func (f Finder) Volume(ctx context.Context, m win.Machine, id win.VolumeID) (bool, error) {
	if !Missing(ctx, m, id) {
		return false, ctx.Err()
	}
	search := f.searches.Join(ctx, struct{}{}, func(ctx context.Context, found *Storage) error { return found.search(ctx, m, f) })
	defer search.Leave()
	if err := search.Wait(ctx); err != nil {
		return false, ctx.Err() // a search that failed has not shown it
	}
	log := klog.FromContext(ctx)
	if notReady := search.Value.NotReady(id); notReady != "" || search.Value.Volumes[id] {
		log.V(2).Info("A volume does not exist now, but may come back", "volume", id, "reason", notReady)
		return false, nil
	}
	if !Missing(ctx, m, id) {
		return false, ctx.Err()
	}
	log.Info("A volume is gone: all disks and volumes answer, and it is not among them", "volume", id)
	return true, nil
}

// Missing reports whether Windows says now that a volume does not exist. It may come back.
func Missing(ctx context.Context, m win.Machine, id win.VolumeID) bool {
	ctx, cancel := context.WithTimeout(ctx, objectLimit)
	defer cancel()
	_, err := m.DeviceNumber(ctx, id.Device())
	return missing(err)
}

// missing reports whether a name does not exist. Codes of disks that are being removed do not say so.
func missing(err error) bool {
	code := winerr.CodeOf(err)
	return code == winerr.FileNotFound || code == winerr.PathNotFound
}

// search lists everything before and after a rescan, if one is due, and SettleTime.
func (s *Storage) search(ctx context.Context, m win.Machine, f Finder) error {
	if s.list(ctx, m); s.notReady != "" {
		return nil
	}
	if s.note(f.Rescan(ctx, m)); s.notReady != "" {
		return nil
	}
	if err := m.Sleep(ctx, SettleTime); err != nil {
		return err
	}
	s.list(ctx, m)
	return nil
}

var errRescanning = errors.New("a rescan of the adapters has not ended")

// rescan makes the adapters look for disks. One that does not answer may still find the disk.
func rescan(ctx context.Context, m win.Machine) error {
	ctx, cancel := context.WithTimeout(ctx, rescanLimit)
	defer cancel()
	adapters, err := m.StorageAdapters(ctx)
	if err != nil {
		return fmt.Errorf("storage adapters: %w", winerr.Cause(err))
	}
	var refused []error
	for i, err := range tasks.Each(ctx, len(adapters), adapterLimit, func(ctx context.Context, i int) error { return m.RescanAdapter(ctx, adapters[i]) }) {
		switch {
		case err != nil && winerr.CodeOf(err) == 0:
			return fmt.Errorf("the adapter %s does not answer", adapters[i])
		case err != nil:
			refused = append(refused, err)
		}
	}
	switch {
	case len(adapters) == 0:
		return errors.New("there is no storage adapter to rescan")
	case len(refused) == len(adapters):
		return fmt.Errorf("no adapter can rescan: %w", refused[0])
	}
	return nil
}

// rescans remembers the last rescan of a machine, for as long as no other is due.
type rescans struct {
	mu    sync.Mutex
	any   bool
	begun time.Duration // by Elapsed
	err   error         // of the last one
}

// Rescan makes all adapters look for disks if that is due. Otherwise it returns how the last time ended, or fails if it has
// not. A rescan that Windows refuses does not count. One that has begun goes on without callers: the next ones need its
// result.
func (f Finder) Rescan(ctx context.Context, m win.Machine) error {
	r, now := f.rescans, m.Elapsed()
	r.mu.Lock()
	if r.any && now-r.begun < rescanPause {
		defer r.mu.Unlock()
		return r.err
	}
	r.any, r.begun, r.err = true, now, errRescanning
	r.mu.Unlock()
	err := rescan(context.WithoutCancel(ctx), m)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun == now {
		r.any, r.err = winerr.CodeOf(err) == 0, err
	}
	return err
}
