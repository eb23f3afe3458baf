package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
	"github.com/kubernetes-csi/csi-proxy/v2/internal/win/winerr"
)

// defaultTimeout is how long a service may take to start or stop if the caller's context has no
// deadline. The service manager itself gives up after this time.
const defaultTimeout = 30 * time.Second

// waitBudget is the time that one call may wait in total, for all services it starts or stops.
type waitBudget struct {
	m     win.Machine
	limit time.Duration
	spent time.Duration
}

func (h host) newWaitBudget(ctx context.Context) *waitBudget {
	w := &waitBudget{m: h.m, limit: defaultTimeout}
	if deadline, has := ctx.Deadline(); has {
		w.limit = time.Until(deadline)
	}
	return w
}

// pause waits for a tenth of the time that the service says it needs, as Microsoft advises. The
// bounds are for services that say nonsense. win.Poll does not fit: the pauses come from the
// service, and several services share one limit.
// https://learn.microsoft.com/windows/win32/services/starting-a-service
func (w *waitBudget) pause(ctx context.Context, status win.ServiceStatus) error {
	const shortest, longest = 100 * time.Millisecond, 2 * time.Second
	pause := min(max(status.WaitHint/10, shortest), longest)
	if w.spent+pause > w.limit {
		state := strings.ToLower(word(states, status.State))
		return fmt.Errorf("%w: after %v it is still %s; Windows continues", winerr.Deadline, w.spent, state)
	}
	w.spent += pause
	return w.m.Sleep(ctx, pause)
}
