package win

import "context"

// inspectorKey is the key under which a context says that its calls are an inspector's.
type inspectorKey struct{}

// AsInspector marks the calls made with a context as an inspector's: it only looks at objects
// that others work with, and gives up when they do not answer. A machine must not let the calls
// that an inspector has abandoned block any other caller.
func AsInspector(ctx context.Context) context.Context {
	return context.WithValue(ctx, inspectorKey{}, true)
}

// IsInspector reports whether a call is an inspector's.
func IsInspector(ctx context.Context) bool { return ctx.Value(inspectorKey{}) != nil }
