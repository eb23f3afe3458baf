package daemon

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubernetes-csi/csi-proxy/v2/cmd/pkg/daemon/grpcapi"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/tasks"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
	"github.com/kubernetes-csi/csi-proxy/v2/pkg/node"
)

// HealMode says what the daemon does about stale mounts. The zero value waits for requests.
type HealMode string

// The modes.
const (
	HealOff          HealMode = "off"           // refuse requests
	HealReport       HealMode = "report"        // look at start, and report
	HealAfterRestart HealMode = "after-restart" // look at start, and remove those of volumes that a start of Windows has lost
	HealRemove       HealMode = "remove"        // look at start, and remove those that are certainly gone
)

// Set implements flag.Value.
func (m *HealMode) Set(value string) error {
	switch mode := HealMode(value); mode {
	case HealOff, HealReport, HealAfterRestart, HealRemove:
		*m = mode
		return nil
	default:
		return fmt.Errorf("it must be %s, %s, %s or %s", HealOff, HealReport, HealAfterRestart, HealRemove)
	}
}

// String implements flag.Value.
func (m *HealMode) String() string { return string(*m) }

// At start the daemon looks again while something may still come or does not answer, but not for ever.
const (
	healRounds = 6
	healPause  = 10 * time.Minute
)

// recheckPause is how long a volume may be back between two looks before the daemon notices.
const recheckPause = time.Minute

// unlinkedPause is from one look at unlinked mounts to the next. Three of them show that a volume was gone for a minute.
const unlinkedPause = 30 * time.Second

// StaleObserver learns what was found about stale mounts. Calls may be concurrent.
type StaleObserver interface {
	// StaleMounts is called after each look.
	StaleMounts(found []node.StaleMount)
}

// healer is a Healer that logs each find when it is new or has changed, and notifies an observer.
type healer struct {
	*node.Node
	observer StaleObserver // may be nil

	mu     sync.Mutex
	logged map[string]node.StaleMount
	looked time.Time
	tried  time.Time // also if it failed
}

func (h *healer) Heal(ctx context.Context, o node.HealOptions) (*node.Healing, error) {
	h.mu.Lock()
	h.tried = time.Now()
	h.mu.Unlock()
	found, err := h.Node.Heal(ctx, o)
	if err != nil {
		return nil, err
	}
	h.log(klog.FromContext(ctx), found)
	if h.observer != nil {
		h.observer.StaleMounts(found.Stale)
	}
	return found, nil
}

// verdict returns what the last look said of a stale mount; nothing if it said nothing.
func (h *healer) verdict(path string) (state, reason string) {
	if h == nil {
		return "", ""
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	found := h.logged[path]
	if age := time.Since(h.looked).Truncate(healPause); found.Reason != "" && age > 0 { // the same at most looks
		found.Reason += fmt.Sprintf(", more than %d minutes ago", int(age.Minutes()))
	}
	return string(found.State), found.Reason
}

// age is how long ago the last look began, also one that failed.
func (h *healer) age() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Since(h.tried)
}

func (h *healer) log(logger klog.Logger, found *node.Healing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.logged == nil {
		h.logged = map[string]node.StaleMount{}
	}
	stale := map[string]node.StaleMount{}
	for _, s := range found.Stale {
		if s.State == node.Removed {
			continue // the node logs removals
		}
		stale[s.Path] = s
		if h.logged[s.Path] != s {
			logger.Info("Found a stale mount", "path", s.Path, "target", s.Target, "driver", s.Driver, "volume", s.Volume,
				"changed", s.Changed, "cause", s.Cause, "state", s.State, "reason", s.Reason)
		}
	}
	h.logged, h.looked = stale, time.Now()
	for _, problem := range found.Problems {
		logger.Info("Could not look for all stale mounts", "problem", problem)
	}
}

// healOff is the healer of a daemon that leaves stale mounts alone.
type healOff struct{}

func (healOff) Heal(context.Context, node.HealOptions) (*node.Healing, error) {
	return nil, winerr.New(winerr.InUse, "heal node", "", "the daemon runs with -heal-stale-mounts=off; restart it with after-restart")
}

// pending reports whether another look may show something else.
func pending(found *node.Healing) bool {
	return len(found.Problems) > 0 || slices.ContainsFunc(found.Stale, func(s node.StaleMount) bool { return s.State == node.Kept })
}

// healAtStart looks for stale mounts until nothing is left that may change by itself.
func healAtStart(ctx context.Context, h grpcapi.Healer, mode HealMode) {
	logger := klog.FromContext(ctx)
	for range healRounds {
		var found *node.Healing
		err := tasks.Recover(ctx, func(ctx context.Context) (err error) {
			found, err = h.Heal(ctx, node.HealOptions{Remove: mode != HealReport, AfterRestart: mode == HealAfterRestart, LeaveMapped: true})
			return err
		})
		if ctx.Err() != nil {
			return
		}
		pause := healPause
		if err != nil {
			logger.Error(err, "Could not look for stale mounts")
		} else {
			if !pending(found) {
				return
			}
			pause = max(found.RetryAfter, healPause)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// repeat looks every pause, until ctx ends.
func repeat(ctx context.Context, what string, pause time.Duration, look func(context.Context) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := tasks.Recover(ctx, look); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not "+what)
		}
	}
}
