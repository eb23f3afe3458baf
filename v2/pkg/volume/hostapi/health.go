package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// Health is what Windows knows of a volume, its file system and its disks.
type Health struct {
	FileSystem string // such as NTFS
	ReadOnly   bool   // writes fail
	// Dirty is the dirty bit: the volume was torn off its node, or NTFS has met damage. Windows mounts it all the same.
	Dirty bool
	// Damage is what the file system has noted about itself.
	Damage Damage
	// Disks are those that the volume lies on.
	Disks []DiskHealth
	// Unknown is what could not be found out, with the reasons.
	Unknown []string
}

// Damage is what a file system has noted about itself.
type Damage string

// The kinds of damage.
const (
	NoDamage      Damage = ""
	SuspectDamage Damage = "scan needed" // a scan finds out
	SpotDamage    Damage = "spot fix needed"
	FullDamage    Damage = "offline repair needed"
	UnknownDamage Damage = "unknown"
)

// DiskHealth is what Windows says of a disk.
type DiskHealth struct {
	Number uint32
	State  string // DiskHealthy and so on
	Reason string // of a state that is not healthy; may be empty
}

// The states of a disk.
const (
	DiskHealthy   = "healthy"
	DiskWarning   = "warning"   // it works, but reports errors or expects to fail
	DiskUnhealthy = "unhealthy" // it does not work
	DiskUnknown   = "unknown"
)

// Problems are sentences about all that is wrong. A volume is well if there is none and nothing is Unknown.
func (h Health) Problems() (problems []string) {
	switch {
	case h.Damage == SuspectDamage || h.Damage == SpotDamage || h.Damage == FullDamage:
		problems = append(problems, h.FileSystem+" is damaged: "+string(h.Damage))
	case h.Dirty:
		problems = append(problems, "the volume is dirty: it was not unmounted properly, or "+h.FileSystem+" has met damage")
	}
	for _, d := range h.Disks {
		if text := d.problem(); text != "" {
			problems = append(problems, text)
		}
	}
	return problems
}

func (d DiskHealth) problem() string {
	var text string
	switch d.State {
	case DiskWarning:
		text = fmt.Sprintf("disk %d reports trouble", d.Number)
	case DiskUnhealthy:
		text = fmt.Sprintf("disk %d does not work", d.Number)
	default:
		return ""
	}
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	return text
}

// Well reports whether everything is known, and nothing is wrong.
func (h Health) Well() bool {
	return len(h.Problems()) == 0 && len(h.Unknown) == 0 && h.Damage == NoDamage
}

const opHealth = "get health of volume"

// Health runs as an inspector: questions without an answer must not keep drivers from asking.
func (b boundHost) Health(volumeID string) (Health, error) {
	ctx, h := win.AsInspector(b.ctx), b.host
	id, err := parseID(opHealth, volumeID)
	if err != nil {
		return Health{}, err
	}
	var health Health
	info, err := h.m.FileSystem(ctx, id)
	if err != nil { // only the file system can say that there is nothing to ask
		return health, failed(opHealth, id, err)
	}
	health.FileSystem, health.ReadOnly = info.Name, info.ReadOnly
	if health.Dirty, err = h.m.VolumeDirty(ctx, id); err != nil {
		switch code := winerr.CodeOf(err); {
		case code == winerr.FileCorrupt: // NTFS cannot read the bit
			health.Dirty, health.Damage = true, FullDamage
		case unknown(err):
			health.Unknown = append(health.Unknown, "dirty bit: "+info.Name+" has none")
		default:
			return health, failed(opHealth, id, err)
		}
	}
	if health.Damage == NoDamage {
		if err := h.damage(ctx, id, &health); err != nil {
			return health, winerr.Wrap(opHealth, string(id), err)
		}
	}
	return health, winerr.Wrap(opHealth, string(id), h.diskHealth(ctx, id, &health))
}

// damage asks the storage service, which may not be there, or not know the volume yet.
func (h host) damage(ctx context.Context, id win.VolumeID, health *Health) error {
	found, err := h.m.VolumeHealth(ctx, id)
	if _, known := found[id]; err == nil && !known { // it is new, as every volume that was just attached
		if err = h.m.RefreshStorageCache(ctx); err == nil {
			found, err = h.m.VolumeHealth(ctx, id)
		}
	}
	if err == nil {
		if of, known := found[id]; known && DamageOf(of) != UnknownDamage {
			health.Damage = DamageOf(of)
			return nil
		}
		err = errors.New("the storage service does not know")
	}
	health.Damage = UnknownDamage
	return health.noteUnknown(ctx, "damage", err)
}

// DamageOf names what Windows says of a file system. A status that is not documented is a reason to look.
func DamageOf(of win.VolumeHealth) Damage {
	needs := func(repair uint16, status win.DiskStatus) bool {
		return slices.Contains(of.Operational, repair) || of.Operational == nil && of.Status == status
	}
	switch {
	case needs(win.FullRepairNeeded, 3):
		return FullDamage
	case needs(win.SpotFixNeeded, 2):
		return SpotDamage
	case needs(win.ScanNeeded, 1):
		return SuspectDamage
	case of.Status == win.DiskHealthy:
		return NoDamage
	case of.Status == win.DiskUnknown:
		return UnknownDamage
	default:
		return SuspectDamage
	}
}

// noteUnknown notes that something is unknown, and fails only if the caller has left.
func (h *Health) noteUnknown(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.Unknown = append(h.Unknown, what+": "+winerr.Cause(err).Error())
	return nil
}

func (h host) diskHealth(ctx context.Context, id win.VolumeID, health *Health) error {
	disks, err := h.disksOf(ctx, opHealth, id)
	if winerr.KindOf(err) == winerr.InUse {
		return nil // it is on no disk, like a RAM disk
	}
	if err != nil {
		return health.noteUnknown(ctx, "disks", err)
	}
	found, err := h.m.DiskHealth(ctx)
	listed := err == nil
	if !listed {
		err = health.noteUnknown(ctx, "health of disks", err)
	}
	for _, number := range disks {
		status, known := found[number]
		d := NewDiskHealth(number, status)
		if !known {
			d = DiskHealth{Number: number, State: DiskUnknown}
		}
		if d.State == DiskUnknown && listed {
			health.Unknown = append(health.Unknown, fmt.Sprintf("health of disk %d: the storage service does not know", number))
		}
		health.Disks = append(health.Disks, d)
	}
	return err
}

// NewDiskHealth names what Windows says of a disk. Code outside this module has DiskHealth from Health.
func NewDiskHealth(number uint32, of win.DiskHealth) DiskHealth {
	state, known := map[win.DiskStatus]string{
		win.DiskHealthy: DiskHealthy, win.DiskWarning: DiskWarning, win.DiskUnhealthy: DiskUnhealthy,
	}[of.Status]
	if !known {
		return DiskHealth{Number: number, State: DiskUnknown}
	}
	d := DiskHealth{Number: number, State: state}
	if state != DiskHealthy {
		d.Reason = of.Reason()
	}
	return d
}
