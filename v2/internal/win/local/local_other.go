//go:build !windows

package local

import (
	"context"

	"github.com/kubernetes-csi/csi-proxy/v2/internal/win"
)

// machine has a clock. Calls of its other methods do not reach it.
type machine struct{ win.Machine }

// thisMachine fails every call.
var thisMachine = win.Intercept(machine{}, func(context.Context, *win.Call, func(context.Context) error) error {
	return ErrNotWindows
})

// Build is empty: this is not Windows.
func Build() string { return "" }

// SANPolicy fails: only Windows has such a policy.
func SANPolicy() (win.SANPolicy, error) { return 0, ErrNotWindows }
