package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winpath"
)

// HealthKeeper is a HostAPI that can tell whether a volume is well, and mend it. The hosts of this package
// implement it. With another host, such requests fail with errors.ErrUnsupported.
type HealthKeeper interface {
	// Health asks what Windows knows already. It reads nothing but the dirty bit from the disk.
	Health(volumeID string) (Health, error)
	// Scan looks at all structures of an NTFS while it is in use, and notes what is damaged. It can take hours.
	Scan(volumeID string) (Health, error)
	// Repair mends an NTFS, and returns what it is like then.
	Repair(volumeID string, options RepairOptions) (Health, error)
}

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
	// Running is the scan or repair that runs on behalf of a caller of this process: scan, spot fix or offline
	// repair. Since is when it began. If another process has the volume locked, or this one had before it was
	// restarted, it is repair or format, and Since is zero.
	Running string
	Since   time.Time
	// Unknown is what could not be found out, with the reasons.
	Unknown []string
}

// Damage is what a file system has noted about itself.
type Damage string

// The kinds of damage. They are MSFT_Volume.HealthStatus:
// https://learn.microsoft.com/windows-hardware/drivers/storage/msft-volume
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

// RepairOptions say how Repair may mend.
type RepairOptions struct {
	// Offline mends what a spot fix cannot. The volume is away all the time, which can be hours.
	Offline bool
	// Dismount lets the volume be taken away from those who use it. Without it, Repair refuses a volume that is
	// mounted somewhere.
	Dismount bool
}

const (
	opHealth = "get health of volume"
	opScan   = "scan volume"
	opRepair = "repair volume"

	// scanLimit bounds a scan or an offline repair whose callers may all have left. Large volumes take hours.
	scanLimit = 24 * time.Hour
)

// running is a scan or repair of this process.
type running struct {
	how   win.Repair
	since time.Time
}

func (b boundHost) Health(volumeID string) (Health, error) {
	ctx, h := b.ctx, b.host
	id, err := parseID(opHealth, volumeID)
	if err != nil {
		return Health{}, err
	}
	return h.healthOf(ctx, opHealth, id)
}

// healthOf asks the file system first: only it can say that there is nothing to ask.
func (h host) healthOf(ctx context.Context, op string, id win.VolumeID) (Health, error) {
	var is Health
	if run, ok := h.repairs.Load(id); ok {
		is.Running, is.Since = string(run.(running).how), run.(running).since
	}
	if is.Running != "" && is.Running != string(win.RepairScan) { // nothing else answers
		is.Damage = UnknownDamage
		is.Unknown = []string{"health: a repair runs"}
		return is, nil
	}
	info, err := h.m.FileSystem(ctx, id)
	switch {
	case h.locked(ctx, id, err):
		is.Running, is.Damage, is.Unknown = otherRepair, UnknownDamage, []string{"health: " + lockedText}
		return is, nil
	case err != nil:
		return is, failed(op, id, err)
	}
	is.FileSystem, is.ReadOnly = info.Name, info.ReadOnly
	if is.Dirty, err = h.m.VolumeDirty(ctx, id); err != nil {
		switch code := winerr.CodeOf(err); {
		case code == winerr.FileCorrupt: // NTFS cannot read the bit
			is.Dirty, is.Damage = true, FullDamage
		case unknown(err):
			is.Unknown = append(is.Unknown, "dirty bit: "+info.Name+" has none")
		default:
			return is, failed(op, id, err)
		}
	}
	if is.Damage == NoDamage {
		if err := h.damage(ctx, id, &is); err != nil {
			return is, winerr.Wrap(op, string(id), err)
		}
	}
	return is, winerr.Wrap(op, string(id), h.diskHealth(ctx, id, &is))
}

const (
	otherRepair = "repair or format"
	lockedText  = "another process has locked it, as a repair does, maybe one that began before csi-proxy was restarted"
)

// locked reports whether another process has the volume for itself. Then the file system refuses to be asked, and the
// device too, which an access list of the root cannot do.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_lock_volume
func (h host) locked(ctx context.Context, id win.VolumeID, err error) bool {
	if winerr.CodeOf(err) != winerr.AccessDenied {
		return false
	}
	_, err = h.m.VolumeDirty(ctx, id)
	return winerr.CodeOf(err) == winerr.AccessDenied
}

// damage asks the storage service, which may not be there, or not know the volume yet.
func (h host) damage(ctx context.Context, id win.VolumeID, is *Health) error {
	found, err := h.m.VolumeHealth(ctx, id)
	if _, known := found[id]; err == nil && !known { // it is new, as every volume that was just attached
		if err = h.m.RefreshStorageCache(ctx); err == nil {
			found, err = h.m.VolumeHealth(ctx, id)
		}
	}
	if err == nil {
		if status, known := found[id]; known && status != win.HealthUnknown {
			is.Damage = DamageOf(status)
			return nil
		}
		err = errors.New("the storage service does not know")
	}
	is.Damage = UnknownDamage
	return is.unless(ctx, "damage", err)
}

// DamageOf names what Windows says of a file system. A status that is not documented is a reason to look.
func DamageOf(status win.VolumeHealth) Damage {
	switch status {
	case win.VolumeHealthy:
		return NoDamage
	case win.SpotFixNeeded:
		return SpotDamage
	case win.FullRepairNeeded:
		return FullDamage
	case win.HealthUnknown:
		return UnknownDamage
	default:
		return SuspectDamage
	}
}

// unless notes that something is unknown, and fails only if the caller has left.
func (h *Health) unless(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	h.Unknown = append(h.Unknown, what+": "+winerr.Cause(err).Error())
	return nil
}

func (h host) diskHealth(ctx context.Context, id win.VolumeID, is *Health) error {
	disks, err := h.disksOf(ctx, opHealth, id)
	if winerr.KindOf(err) == winerr.InUse {
		return nil // it is on no disk, like a RAM disk
	}
	if err != nil {
		return is.unless(ctx, "disks", err)
	}
	found, err := h.m.DiskHealth(ctx)
	listed := err == nil
	if !listed {
		err = is.unless(ctx, "health of disks", err)
	}
	for _, number := range disks {
		health, known := found[number]
		d := NewDiskHealth(number, health)
		if !known {
			d = DiskHealth{Number: number, State: DiskUnknown}
		}
		if d.State == DiskUnknown && listed {
			is.Unknown = append(is.Unknown, fmt.Sprintf("health of disk %d: the storage service does not know", number))
		}
		is.Disks = append(is.Disks, d)
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

func (b boundHost) Scan(volumeID string) (Health, error) {
	ctx, h := b.ctx, b.host
	id, err := parseID(opScan, volumeID)
	if err != nil {
		return Health{}, err
	}
	if _, err := h.mendable(ctx, opScan, id); err != nil {
		return Health{}, err
	}
	return h.scanned(ctx, opScan, id)
}

// mendable fails for a volume that must not be scanned or repaired, and returns its health.
func (h host) mendable(ctx context.Context, op string, id win.VolumeID) (Health, error) {
	if _, ok := h.repairs.Load(id); ok {
		return Health{FileSystem: ntfsName}, nil // it was when that began, and a repair answers no question
	}
	is, err := h.healthOf(ctx, op, id)
	switch {
	case err != nil:
		return is, err
	case is.Running == otherRepair:
		return is, winerr.New(winerr.InUse, op, string(id), "%s; try again when it is done", lockedText)
	case winpath.Equal(is.FileSystem, refsName):
		return is, winerr.New(winerr.Unsupported, op, string(id), "it has ReFS, which mends itself; Windows has no repair for it")
	case !winpath.Equal(is.FileSystem, ntfsName):
		return is, winerr.New(winerr.Unsupported, op, string(id), "its file system is %s, and only NTFS can be repaired", is.FileSystem)
	case is.ReadOnly:
		return is, winerr.As(winerr.InUse, op, string(id), winerr.WriteProtect, "make its disk writable with SetDiskReadOnly")
	}
	return is, h.refuseSystemDisk(ctx, op, id)
}

// Repair mends a volume: a spot fix mends what is noted, so that a scan goes before it.
func (b boundHost) Repair(volumeID string, options RepairOptions) (Health, error) {
	ctx, h := b.ctx, b.host
	id, err := parseID(opRepair, volumeID)
	if err != nil {
		return Health{}, err
	}
	is, err := h.mendable(ctx, opRepair, id)
	if err != nil {
		return is, err
	}
	runs, _ := h.repairs.Load(id)
	if run, ok := runs.(running); ok && run.how == win.RepairSpotFix && !options.Offline { // join it
		return h.fixed(ctx, id, win.RepairSpotFix, options)
	}
	if options.Offline {
		return h.fixed(ctx, id, win.RepairOffline, options)
	}
	if err := h.refuseUsed(ctx, id, options); err != nil {
		return is, err // before a scan of hours
	}
	if is.Damage != SpotDamage && is.Damage != FullDamage {
		if is, err = h.scanned(ctx, opRepair, id); err != nil {
			return is, err
		}
	}
	switch {
	case is.Damage == FullDamage:
		return is, winerr.New(winerr.InUse, opRepair, string(id), "a spot fix cannot mend it; repair it offline")
	case is.Damage == NoDamage && !is.Dirty:
		return is, nil
	}
	return h.fixed(ctx, id, win.RepairSpotFix, options)
}

// fixed does what needs the volume for itself, in turn with all other changes of it, and returns the health then.
func (h host) fixed(ctx context.Context, id win.VolumeID, how win.Repair, options RepairOptions) (Health, error) {
	w := work{op: opRepair, volume: id, repair: how, dismount: options.Dismount}
	err := h.changes.Do(ctx, w, scanLimit, func(ctx context.Context) error {
		if err := h.refuseUsed(ctx, id, options); err != nil { // it may be by now
			return err
		}
		return h.callRepair(ctx, id, how)
	})
	if err != nil {
		return Health{}, winerr.Wrap(opRepair, string(id), err)
	}
	return h.healthOf(ctx, opRepair, id)
}

// refuseUsed fails for a volume that is mounted somewhere, unless the caller wants to dismount it. The answer does not
// depend on open files: Windows might invalidate their handles.
func (h host) refuseUsed(ctx context.Context, id win.VolumeID, options RepairOptions) error {
	if _, runs := h.repairs.Load(id); runs || options.Dismount {
		return nil
	}
	paths, err := h.m.VolumePaths(ctx, id)
	if err != nil {
		return failed(opRepair, id, err)
	}
	if len(paths) == 0 {
		return nil
	}
	slices.Sort(paths)
	const most = 3
	text := strings.Join(paths[:min(len(paths), most)], ", ")
	if more := len(paths) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return winerr.New(winerr.InUse, opRepair, string(id), "it is in use at %s, and a repair takes it away; unmount it first, or ask for it to be dismounted", text)
}

// scanned scans a volume. Other changes of it do not wait, because the volume stays in use.
func (h host) scanned(ctx context.Context, op string, id win.VolumeID) (Health, error) {
	w := work{op: opScan, volume: id, repair: win.RepairScan}
	err := h.changes.Do(ctx, w, scanLimit, func(ctx context.Context) error { return h.callRepair(ctx, id, win.RepairScan) })
	if err != nil {
		return Health{}, winerr.Wrap(op, string(id), err)
	}
	return h.healthOf(ctx, op, id)
}

// otherScan is how often the end of a scan is awaited that another program has begun, or this one before it was
// restarted: Windows goes on with it.
var otherScan = win.Backoff{First: time.Second, Longest: time.Minute, Limit: scanLimit}

// callRepair has Windows scan or repair. What it answers is not trusted: the caller asks for the health afterwards.
// https://learn.microsoft.com/windows-hardware/drivers/storage/repair-msft-volume
func (h host) callRepair(ctx context.Context, id win.VolumeID, how win.Repair) error {
	logger := klog.FromContext(ctx)
	began := h.m.Now()
	h.repairs.Store(id, running{how, began})
	defer h.repairs.Delete(id)
	logger.Info("A repair of a volume begins", "volume", id, "repair", how)
	const patience = 4 // for a volume that is new
	waits, unseen := false, 0
	var failure error
	_, err := win.Poll(ctx, h.m, otherScan, func(time.Duration) (bool, error) {
		failure = h.m.RepairVolume(ctx, id, how)
		switch {
		case errors.Is(failure, winerr.StorageScanRunning):
			if !waits {
				logger.Info("A scan of the volume runs that this process has not begun; waiting for it", "volume", id)
			}
			waits = true
			return false, nil
		case unnoticed(failure) && unseen < patience:
			unseen++
			// The refresh may help; its failure does not matter.
			if err := h.m.RefreshStorageCache(ctx); err != nil && ctx.Err() != nil {
				return false, err
			}
			return false, nil
		}
		return true, nil
	})
	if err == nil {
		err = failure
	}
	logger.Info("A repair of a volume has ended", "volume", id, "repair", how, "duration", h.m.Now().Sub(began), "error", err)
	switch {
	case errors.Is(err, winerr.StorageCannotOpen):
		return winerr.As(winerr.InUse, string(how), string(id), err, "stop the pods that use it, and try again")
	case errors.Is(err, winerr.StorageRepairFailed) && how == win.RepairSpotFix:
		return winerr.As(winerr.InUse, string(how), string(id), err, "repair it offline")
	case errors.Is(err, winerr.NotFound):
		return failed(string(how), id, err)
	}
	return err
}
