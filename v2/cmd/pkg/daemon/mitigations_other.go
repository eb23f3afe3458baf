//go:build !windows

package daemon

import "context"

// Mitigate does nothing here. On Windows it restricts the process until it ends.
func Mitigate(context.Context, bool) {}
