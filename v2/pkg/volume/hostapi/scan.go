package api

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

const (
	// atOnce is how many volumes are asked at the same time. Healthy ones answer in
	// microseconds, so this is not for speed but for the one in many that hangs.
	atOnce = 8

	// hangLimit is how long one volume may hold up a list. A disk whose controller is
	// resetting answers after 10 to 60 seconds, or never.
	hangLimit = 5 * time.Second
)

type volumeScan struct {
	host
	disk uint32
	stop context.CancelFunc

	mu       sync.Mutex
	ids      []win.VolumeID  // not asked yet
	expected map[uint32]bool // partitions whose volume is not found yet; may be nil
	found    []volumeOnDisk
	complete bool                  // every expected partition has its volume
	hung     win.VolumeID          // one that did not answer
	names    map[win.VolumeID]bool // of volumes that are probably on the disk
	unproven error                 // of a volume that may be on the disk
	failure  error
}

// scanVolumes asks all volumes where they are, until each of the expected partitions has
// its volume. A volume that hangs holds up a call only if a volume is still missing, and not
// for long; hung is one of them. unproven is the error of a volume that may be on an expected
// partition.
func (h host) scanVolumes(ctx context.Context, disk uint32, layout win.DriveLayout, partition uint32) (found []volumeOnDisk, hung win.VolumeID, unproven, err error) {
	ids, err := h.m.VolumeIDs(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	each, stop := context.WithCancel(ctx)
	defer stop()
	s := volumeScan{host: h, disk: disk, stop: stop, ids: ids, expected: expected(layout, partition), names: map[win.VolumeID]bool{}}
	for _, p := range layout.Partitions {
		if layout.Style == win.StyleGPT && (partition == 0 || p.Number == partition) {
			s.names[volumeName(p)] = true
		}
	}
	none := s.expected != nil && len(s.expected) == 0
	var wg sync.WaitGroup
	for range min(atOnce, len(ids)) {
		wg.Go(func() {
			for id, ok := s.next(each); ok; id, ok = s.next(each) {
				s.ask(each, id)
			}
		})
	}
	wg.Wait()
	switch {
	case s.complete:
		return s.found, "", nil, nil
	case ctx.Err() != nil:
		return nil, "", nil, ctx.Err()
	case none:
		return s.found, "", nil, s.failure
	default:
		return s.found, s.hung, s.unproven, s.failure
	}
}

func (s *volumeScan) next(ctx context.Context) (id win.VolumeID, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == 0 || ctx.Err() != nil {
		return "", false
	}
	id, s.ids = s.ids[0], s.ids[1:]
	return id, true
}

func (s *volumeScan) ask(ctx context.Context, id win.VolumeID) {
	limited, cancel := context.WithTimeout(ctx, hangLimit)
	defer cancel()
	var at volumeOnDisk
	var ok bool
	err := tasks.Recover(limited, func(ctx context.Context) (err error) {
		at, ok, err = s.locate(ctx, id, s.disk)
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case ctx.Err() != nil: // the scan has ended
	case errors.Is(err, context.DeadlineExceeded):
		s.hung = id
		klog.FromContext(ctx).V(2).Info("A volume hangs when asked which disk it is on and is left out", "volume", id, "error", err)
	case err != nil && answered(err):
		// One on a dying disk must not hide the others. Floppy and RAM disks never know the
		// question, so that answer counts only if the name is one of this disk.
		if s.names[id] || !unknown(err) {
			s.unproven = fmt.Errorf("volume %s may be on the disk, but does not report where it is: %w", id, err)
		}
		klog.FromContext(ctx).V(2).Info("A volume does not report its disk and is left out", "volume", id, "error", err)
	case err != nil:
		s.failure = err
		s.stop()
	case ok:
		s.found = append(s.found, at)
		if s.expected[at.partition] && at.extents == nil {
			delete(s.expected, at.partition)
			if s.complete = len(s.expected) == 0; s.complete {
				s.stop()
			}
		}
	}
}
