package node

import (
	"context"
	"errors"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// health is what the storage service says of all volumes and disks: one question for each, because it is slow.
type health struct {
	volumes map[win.VolumeID]win.VolumeHealth
	disks   map[uint32]win.DiskHealth
}

// lists are the two questions. A machine without the service has no answer, and no problem.
func (h *health) lists(l *lookup) []list {
	unlessUnsupported := func(err error) error {
		if errors.Is(err, winerr.Unsupported) || errors.Is(err, winerr.NotFound) {
			return nil
		}
		return err
	}
	return []list{
		{"health of volumes", func(ctx context.Context) (err error) {
			h.volumes, err = l.m.VolumeHealth(ctx, "")
			return unlessUnsupported(err)
		}},
		{"health of disks", func(ctx context.Context) (err error) {
			h.disks, err = l.m.DiskHealth(ctx)
			return unlessUnsupported(err)
		}},
	}
}

// join adds the answers. What the service does not know stays unknown.
func (h *health) join(node *Description) {
	for i := range node.Volumes {
		v := &node.Volumes[i]
		if status, known := h.volumes[win.VolumeID(v.ID)]; known && v.State == Formatted {
			v.Damage = volumeapi.DamageOf(status)
		}
	}
	for i := range node.Disks {
		d := &node.Disks[i]
		if d.Number == nil {
			continue
		}
		if of, known := h.disks[*d.Number]; known {
			health := volumeapi.NewDiskHealth(*d.Number, of)
			d.Health, d.HealthReason = health.State, health.Reason
		}
	}
}

// dirty asks for the dirty bit, which some file systems do not have.
func (l *lookup) dirty(ctx context.Context, id win.VolumeID, v *volumeReport) {
	dirty, err := l.m.VolumeDirty(ctx, id)
	if winerr.CodeOf(err) == winerr.FileCorrupt { // NTFS cannot read it
		dirty, err = true, nil
	}
	if v.failed.addUnlessUnsupported("dirty bit", err); err == nil {
		v.Dirty = &dirty
	}
}
