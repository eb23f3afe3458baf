package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/flight"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/keylock"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/work/parallel"
)

const (
	opRescan = "rescan disks"

	// adapterLimit is how long one adapter may take. A broken one runs into the
	// timeouts of its driver, 30 to 60 seconds.
	adapterLimit = time.Minute

	// roundLimit ends a rescan that nobody waits for any more: the wait for the one
	// before it, and its own.
	roundLimit = 3 * time.Minute
)

// rescans lets callers share rescans. One that is under way is of no use to whoever comes
// after its start, because the disk may have come in between; but all who come during it
// are served by the next.
type rescans struct {
	rounds flight.Group[uint64] // by number of the round
	turn   keylock.Locks[struct{}]

	mu      sync.Mutex
	started uint64 // the last round that has started
	waiting map[string]bool
}

func (h *host) rescan(ctx context.Context) error {
	r := &h.rescans
	r.mu.Lock()
	next := r.started + 1
	r.mu.Unlock()
	err := r.rounds.Do(ctx, next, roundLimit, func(ctx context.Context) error {
		unlock, err := r.turn.Lock(ctx, struct{}{})
		if err != nil {
			return err
		}
		defer unlock()
		r.start(next)
		return h.scan(ctx)
	})
	if late := r.late(); err != nil && ctx.Err() != nil && late != "" {
		return winerr.As(winerr.KindOf(err), opRescan, "", err, "no answer from "+late)
	}
	return winerr.Wrap(opRescan, "", err)
}

func (r *rescans) start(round uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started = max(r.started, round)
}

// expect notes that an adapter has been asked, and returns what to call when it answers.
func (r *rescans) expect(adapter string) (answered func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[string]bool{}
	}
	r.waiting[adapter] = true
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, adapter)
	}
}

// late names the adapters that have been asked and not answered.
func (r *rescans) late() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return list(slices.Sorted(maps.Keys(r.waiting)))
}

func list(adapters []string) string {
	switch len(adapters) {
	case 0:
		return ""
	case 1:
		return "adapter " + adapters[0]
	default:
		return "adapters " + strings.Join(adapters, ", ")
	}
}

// scan makes the adapters look for disks that came or went, and then Windows for the size
// and partitions of each disk. The latter helps even when the former failed.
func (h *host) scan(ctx context.Context) error {
	err := h.scanAdapters(ctx)
	devices, listErr := h.m.DiskDevices(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	parallel.Each(ctx, len(devices), patience, func(ctx context.Context, i int) error {
		// Best effort: not all drivers know both, and a dying disk is its user's concern.
		_ = h.m.UpdateDisk(ctx, devices[i])
		_ = h.m.UpdateDriveSize(ctx, devices[i])
		return nil
	})
	return err
}

// scanAdapters makes the storage adapters look for disks. One that cannot is no reason to
// fail, since the disk that the caller waits for is elsewhere more often than not; one
// that does not answer is, since nobody knows what it will find.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode
func (h *host) scanAdapters(ctx context.Context) error {
	log := klog.FromContext(ctx)
	adapters, err := h.m.StorageAdapters(ctx)
	if err != nil {
		log.V(2).Info("The storage adapters cannot be listed; all devices are rescanned instead", "err", err)
	}
	failures := parallel.Each(ctx, len(adapters), adapterLimit, func(ctx context.Context, i int) error {
		defer h.rescans.expect(adapters[i])()
		return h.m.RescanAdapter(ctx, adapters[i])
	})
	var late []string
	scanned := 0
	for i, err := range failures {
		switch kind := winerr.KindOf(err); {
		case err == nil:
			scanned++
		case kind == winerr.Deadline || kind == winerr.Cancelled:
			late = append(late, adapters[i])
		default:
			log.V(2).Info("A storage adapter cannot be rescanned", "adapter", adapters[i], "err", err)
		}
	}
	if len(late) > 0 {
		return winerr.New(winerr.Deadline, opRescan, "", "no answer from %s within %s", list(late), adapterLimit)
	}
	if scanned > 0 {
		return nil
	}
	if err := h.m.RescanAdapter(ctx, ""); err != nil {
		return winerr.Wrap(opRescan, "", fmt.Errorf("the root of the device tree: %w", err))
	}
	return nil
}
