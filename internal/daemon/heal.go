package daemon

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks/guard"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// HealMode says what the daemon does about stale mounts. The zero value waits for requests.
type HealMode string

// The modes.
const (
	HealOff    HealMode = "off"    // refuse requests
	HealReport HealMode = "report" // look at start, and tell
	HealRemove HealMode = "remove" // look at start, and remove those that are certainly gone
)

// Set implements flag.Value.
func (m *HealMode) Set(value string) error {
	switch mode := HealMode(value); mode {
	case HealOff, HealReport, HealRemove:
		*m = mode
		return nil
	default:
		return fmt.Errorf("it must be %s, %s or %s", HealOff, HealReport, HealRemove)
	}
}

// String implements flag.Value.
func (m *HealMode) String() string { return string(*m) }

// At start the daemon looks again while something may still come, but not for ever.
const (
	healRounds = 6
	healPause  = 10 * time.Minute
)

// StaleObserver learns what was found about stale mounts. Calls may be concurrent.
type StaleObserver interface {
	// StaleMounts is called after each look.
	StaleMounts(found []node.StaleMount)
}

// healer is a Healer that tells an observer.
type healer struct {
	grpcapi.Healer
	observer StaleObserver // may be nil
}

// Heal implements grpcapi.Healer.
func (h healer) Heal(ctx context.Context, o node.HealOptions) (*node.Healing, error) {
	found, err := h.Healer.Heal(ctx, o)
	if err == nil && h.observer != nil {
		h.observer.StaleMounts(found.Stale)
	}
	return found, err
}

// refusal is the healer of a daemon that leaves stale mounts alone.
type refusal struct{}

// Heal implements grpcapi.Healer.
func (refusal) Heal(context.Context, node.HealOptions) (*node.Healing, error) {
	return nil, winerr.New(winerr.InUse, "heal node", "", "the daemon runs with -heal-stale-mounts=off; restart it with report or remove")
}

// healAtStart looks for stale mounts until nothing is left that may change by itself, and logs each
// find when it is new or its state has changed.
func healAtStart(ctx context.Context, h grpcapi.Healer, mode HealMode, after func(time.Duration) <-chan time.Time) {
	logger := klog.FromContext(ctx)
	told := map[string]node.StaleMount{}
	for range healRounds {
		var found *node.Healing
		err := guard.Run(ctx, func(ctx context.Context) (err error) {
			found, err = h.Heal(ctx, node.HealOptions{Remove: mode == HealRemove})
			return err
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			logger.Error(err, "Could not look for stale mounts")
			return
		}
		pending := 0
		for _, stale := range found.Stale {
			if stale.State == node.Kept {
				pending++
			}
			if stale.State != node.Removed && told[stale.Path] != stale { // the node logs removals
				told[stale.Path] = stale
				logger.Info("Found a stale mount", "path", stale.Path, "target", stale.Target, "driver", stale.Driver, "volume", stale.Volume,
					"changed", stale.Changed, "cause", stale.Cause, "state", stale.State, "reason", stale.Reason)
			}
		}
		for _, problem := range found.Problems {
			logger.V(2).Info("Could not look for all stale mounts", "problem", problem)
		}
		if pending == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-after(max(found.Again, healPause)):
		}
	}
}
