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

// wait is what one call may wait in all, for as many services as it deals with.
type wait struct {
	m     win.Machine
	limit time.Duration
	spent time.Duration
}

func (h host) newWait(ctx context.Context) *wait {
	w := &wait{m: h.m, limit: defaultTimeout}
	if deadline, has := ctx.Deadline(); has {
		w.limit = time.Until(deadline)
	}
	return w
}

// pause lets a service get on with what is pending, for a tenth of the time it says it
// needs. Services say so in good faith at best, hence the bounds.
// https://learn.microsoft.com/windows/win32/services/starting-a-service
func (w *wait) pause(ctx context.Context, status win.ServiceStatus) error {
	const shortest, longest = 100 * time.Millisecond, 2 * time.Second
	pause := min(max(status.WaitHint/10, shortest), longest)
	if w.spent+pause > w.limit {
		state := strings.ToLower(word(states, status.State))
		return fmt.Errorf("%w: after %v it is still %s, and goes on by itself", winerr.Deadline, w.spent, state)
	}
	w.spent += pause
	return w.m.Sleep(ctx, pause)
}
