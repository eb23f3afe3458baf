package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/client/failure"
	volumeapi "github.com/kubernetes-csi/csi-proxy/v2/pkg/volume/hostapi"
)

// reportLimit is how long Stage waits for a report, and Condition for each answer: a service that hangs must not keep a
// volume from its pod, and what hangs is a condition.
const reportLimit = 5 * time.Second

// reportHealth logs what is wrong with a volume that is mounted next. It fails only if the caller has left.
func (m *Mounter) reportHealth(ctx context.Context, id string) error {
	logger := klog.FromContext(ctx)
	limited, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	health, err := m.node.vols.Health(limited, id)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case isUnimplemented(err): // by an older daemon
		return nil
	case err != nil:
		logger.Info("The health of a volume is unknown", "volume", id, "error", err.Error())
		return nil
	}
	if len(health.Unknown) > 0 {
		logger.V(2).Info("The health of a volume is not all known", "volume", id, "unknown", health.Unknown)
	}
	if problems := health.Problems(); len(problems) > 0 {
		logger.Info("A volume is not well, and is mounted all the same", "volume", id, "problems", problems,
			"remedy", "csi-proxyctl volume check "+id)
	}
	return nil
}

// Condition is how a volume is, made for VolumeCondition of CSI's NodeGetVolumeStats, which kubelet reads, and for
// NodeGetVolumeHealth, which replaces it in CSI 1.13; modules of CSI up to v1.12 have VolumeCondition.
type Condition struct {
	// Abnormal means that the volume needs care.
	Abnormal bool
	// Inaccessible means that it cannot be used now.
	Inaccessible bool
	// Reason is the first problem in one word, one of those below. It is empty for a volume that is well.
	Reason string
	// Message is a sentence, also if the volume is well, or if not all is known.
	Message string
}

// The reasons of a Condition.
const (
	ReasonGone       = "Gone"     // nothing is mounted there any more, or its disk is offline
	ReasonNoAnswer   = "NoAnswer" // the disk or the share fails
	ReasonDamaged    = "Damaged"  // the file system has noted damage
	ReasonDirty      = "Dirty"    // it was not unmounted properly
	ReasonFailing    = "DiskFailing"
	ReasonReadOnly   = "ReadOnly"   // although it was staged for writing
	ReasonNearlyFull = "NearlyFull" // less than a twentieth is left
)

const opCondition = "look at the condition of the volume at"

func (c *Condition) add(reason, message string) {
	if c.Abnormal {
		c.Message += "; " + message
		return
	}
	*c = Condition{Abnormal: true, Reason: reason, Message: message}
}

// lost returns the condition of a volume that cannot be used.
func lost(reason, message string) Condition {
	return Condition{Abnormal: true, Inaccessible: true, Reason: reason, Message: message}
}

// Condition returns how the volume at a path is: where it is staged, a pod's link to it, or a link to a share. It
// asks the node at most three times. What does not answer within five seconds is a condition; an error means that nothing is known, as
// after the end of ctx. It matches fs.ErrNotExist if there is no such path.
func (m *Mounter) Condition(ctx context.Context, volumePath string) (Condition, error) {
	path, err := m.path(volumePath)
	if err != nil {
		return Condition{}, duringAt(opCondition, volumePath, err)
	}
	condition, err := m.conditionAt(ctx, path)
	switch {
	case ctx.Err() != nil:
		return Condition{}, duringAt(opCondition, path, ctx.Err())
	case err != nil && (cannotTell(err) || errors.Is(err, fs.ErrNotExist)):
		return Condition{}, duringAt(opCondition, path, err)
	case err != nil:
		condition = lost(ReasonNoAnswer, failure.Message(err))
	case !condition.Abnormal && condition.Message == "":
		condition.Message = "the volume is well"
	}
	return condition, nil
}

// soon asks about an object, and waits no longer than reportLimit.
func soon[T any](ctx context.Context, object string, ask func(context.Context, string) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, reportLimit)
	defer cancel()
	return ask(limited, object)
}

func (m *Mounter) conditionAt(ctx context.Context, path string) (Condition, error) {
	id, err := soon(ctx, path, m.node.mountedAt)
	if errors.Is(err, fs.ErrNotExist) {
		return m.shareCondition(ctx, path)
	}
	if err != nil {
		return Condition{}, err
	}
	var c Condition
	health, err := soon(ctx, id, m.node.vols.Health)
	switch {
	case err == nil:
		c.health(health)
	case isUnimplemented(err):
		c.unsure([]string{"the daemon is too old to tell"})
	case errors.Is(err, fs.ErrNotExist):
		return lost(ReasonGone, "the volume is gone, or its disk is offline"), nil
	default:
		return Condition{}, err
	}
	if health.ReadOnly && m.isForWriting(ctx, path) {
		c.add(ReasonReadOnly, "the volume has become read-only")
	}
	usage, err := soon(ctx, id, m.node.volumeSpace)
	c.space(usage)
	return c, err
}

func (c *Condition) health(health volumeapi.Health) {
	reason := ReasonFailing
	switch {
	case health.Damage != volumeapi.NoDamage && health.Damage != volumeapi.UnknownDamage:
		reason = ReasonDamaged
	case health.Dirty:
		reason = ReasonDirty
	}
	for _, problem := range health.Problems() {
		c.add(reason, problem)
	}
	c.unsure(health.Unknown)
}

// unsure says what is not known of a volume of which nothing bad is known: that is not health, and no alarm.
func (c *Condition) unsure(unknown []string) {
	if !c.Abnormal && len(unknown) > 0 {
		c.Message = "nothing is known to be wrong, but not all is known: " + strings.Join(unknown, "; ")
	}
}

// shareCondition is about a link to a share, or a path at which nothing is mounted.
func (m *Mounter) shareCondition(ctx context.Context, path string) (Condition, error) {
	live, err := soon(ctx, path, m.node.isLiveLink)
	if err != nil {
		return Condition{}, err
	}
	usage, err := soon(ctx, path, m.node.pathSpace)
	var c Condition
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !live:
		return lost(ReasonGone, "no volume is there any more: it is gone with its disk, or not staged"), nil
	case err != nil && !cannotTell(err):
		return lost(ReasonNoAnswer, "the share does not answer: "+failure.Message(err)), nil
	case err == nil:
		c.space(usage)
	}
	return c, err
}

func (c *Condition) space(u Usage) {
	const twentieth = 20
	if u.TotalBytes > 0 && u.AvailableBytes < u.TotalBytes/twentieth {
		c.add(ReasonNearlyFull, fmt.Sprintf("the volume is nearly full: %d of %d bytes are left", max(0, u.AvailableBytes), u.TotalBytes))
	}
}
