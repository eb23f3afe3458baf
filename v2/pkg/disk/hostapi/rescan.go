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

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

const (
	opRescan = "rescan disks"

	// adapterLimit is how long one adapter may take. A broken one runs into the
	// timeouts of its driver, 30 to 60 seconds.
	adapterLimit = time.Minute

	// updateLimit is how long one disk may take to show its size. Windows goes on with a request that takes longer.
	updateLimit = time.Second

	// rescanLimit ends a rescan whose callers have all left.
	rescanLimit = 3 * time.Minute
)

// Rescan makes Windows look for disks. Callers share one only if they come before it
// begins: a disk that arrives later may be missed. All callers who come during a rescan share
// the next one.
func (d DiskAPI) Rescan() error {
	ctx, h := d.bound()
	err := h.changes.Do(ctx, change{op: opRescan, object: "all disks", fresh: true}, rescanLimit, h.scan)
	if late := h.adapters.late(); err != nil && ctx.Err() != nil && late != "" {
		return winerr.As(winerr.KindOf(err), opRescan, "", err, "no answer from "+late)
	}
	return winerr.Wrap(opRescan, "", err)
}

// adaptersAsked are the adapters that were asked to rescan and have not answered. The zero value
// is ready.
type adaptersAsked struct {
	mu      sync.Mutex
	waiting map[string]bool
}

// expect notes that an adapter has been asked, and returns what to call when it answers.
func (a *adaptersAsked) expect(adapter string) (answered func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = map[string]bool{}
	}
	a.waiting[adapter] = true
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, adapter)
	}
}

// late names the adapters that have been asked and not answered.
func (a *adaptersAsked) late() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return list(slices.Sorted(maps.Keys(a.waiting)))
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

// scan makes the adapters look for disks that came or went, and then Windows read the size and
// partitions of each disk. The second step helps even if the first one failed.
func (h *host) scan(ctx context.Context) error {
	err := h.scanAdapters(ctx)
	devices, listErr := h.m.DiskDevices(ctx)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	tasks.Each(ctx, len(devices), updateLimit, func(ctx context.Context, i int) error {
		ctx, done := h.slow.Bound(ctx, "size of "+string(devices[i]))
		defer done()
		// Best effort: not all drivers know both calls, and a failing disk must not fail the
		// rescan.
		_ = h.m.UpdateDisk(ctx, devices[i])
		_ = h.m.UpdateDriveSize(ctx, devices[i])
		return nil
	})
	return err
}

// scanAdapters makes the storage adapters look for disks. An adapter that cannot is not a reason to
// fail: most often the caller waits for a disk of another one. An adapter that does not answer is
// a failure, because it may still find the disk.
// https://learn.microsoft.com/windows/win32/api/cfgmgr32/nf-cfgmgr32-cm_reenumerate_devnode
func (h *host) scanAdapters(ctx context.Context) error {
	log := klog.FromContext(ctx)
	adapters, err := h.m.StorageAdapters(ctx)
	if err != nil {
		log.V(2).Info("Could not list the storage adapters; rescanning all devices", "err", err)
	}
	failures := tasks.Each(ctx, len(adapters), adapterLimit, func(ctx context.Context, i int) error {
		defer h.adapters.expect(adapters[i])()
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
			log.V(2).Info("Could not rescan a storage adapter", "adapter", adapters[i], "err", err)
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
