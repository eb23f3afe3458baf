// Package tasks has how work runs: many objects at once, locks by key, and recovered panics.
package tasks

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"k8s.io/klog/v2"
)

// Recover calls do and turns a panic into an error. It is for goroutines of our own: the edge of
// the server recovers only what happens on a request's goroutine, and a panic on any other one would
// end the process, and with it all mounts in progress. It logs the panic with its stack, at the level
// of errors, to the logger of ctx: the error alone may be dropped as "one object of many failed".
//
// The error reaches clients. So it has one line, the first of the panic's text, and no stack.
func Recover(ctx context.Context, do func(ctx context.Context) error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			text := fmt.Sprint(cause)
			klog.FromContext(ctx).Error(fmt.Errorf("panic: %s", text), "Recovered from a panic", "stack", string(debug.Stack()))
			line, _, _ := strings.Cut(text, "\n")
			err = fmt.Errorf("internal error; see the csi-proxy log: panic: %s", line)
		}
	}()
	return do(ctx)
}
