// Package gone decides whether a volume that a mounted folder names is certainly gone, such as that of a disk that was
// torn away. Its mount is then nothing that a driver could unmount or a pod could use. A volume that only does not
// answer, whose disk is offline or has not arrived yet, or whose iSCSI session is interrupted, is not gone.
package gone

import (
	"context"
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

	// adapterLimit is how long one adapter may take to look for disks.
	adapterLimit = time.Minute

	// gather is how long callers have to join the first search. When a node loses its disks, drivers ask for many.
	gather = 2 * time.Millisecond
)

// Finder finds out which volumes of a machine are gone. Callers share its searches.
type Finder struct {
	searches *shared.Answers[struct{}, storage]
}

// NewFinder returns a Finder. Each machine needs its own.
func NewFinder() Finder { return Finder{shared.New[struct{}, storage](gather, 2*SettleTime)} }

// Volume reports whether a volume is certainly gone. For one that exists it makes one call, which needs no access to
// the disk. For another it looks at all disks and volumes, twice, with a rescan between. It fails only if ctx ends.
func (f Finder) Volume(ctx context.Context, m win.Machine, id win.VolumeID) (bool, error) {
	if !Missing(ctx, m, id) {
		return false, ctx.Err()
	}
	search := f.searches.Join(ctx, struct{}{}, func(ctx context.Context, found *storage) error { return found.search(ctx, m) })
	defer search.Leave()
	if err := search.Wait(ctx); err != nil {
		return false, ctx.Err() // a search that failed has not shown it
	}
	log := klog.FromContext(ctx)
	if found := &search.Value; found.notReady != "" || found.volumes[id] {
		log.V(2).Info("A volume does not exist now, but may come back", "volume", id, "reason", found.notReady)
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

// search looks before and after a rescan.
func (s *storage) search(ctx context.Context, m win.Machine) error {
	if s.look(ctx, m); s.notReady != "" {
		return nil
	}
	if s.notReady = rescan(ctx, m); s.notReady != "" {
		return nil
	}
	if err := m.Sleep(ctx, SettleTime); err != nil {
		return err
	}
	s.look(ctx, m)
	return nil
}

// rescan makes the adapters look for disks. One that cannot is not a reason to wait; one that does not answer may
// still find the disk.
func rescan(ctx context.Context, m win.Machine) (notReady string) {
	adapters, err := m.StorageAdapters(ctx)
	if err != nil {
		return "storage adapters: " + reason(err)
	}
	for i, err := range tasks.Each(ctx, len(adapters), adapterLimit, func(ctx context.Context, i int) error { return m.RescanAdapter(ctx, adapters[i]) }) {
		if err != nil && winerr.CodeOf(err) == 0 {
			return "the adapter " + adapters[i] + " does not answer"
		}
	}
	return ""
}
