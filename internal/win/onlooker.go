package win

import "context"

// onlooker is the key under which a context says whose calls are made with it.
type onlooker struct{}

// Onlooking marks the calls that are made with a context as those of an onlooker: somebody
// who looks at objects that others work with, and leaves when they do not answer. A machine
// must not let calls that an onlooker has left behind stand in the way of anybody else.
func Onlooking(ctx context.Context) context.Context {
	return context.WithValue(ctx, onlooker{}, true)
}

// IsOnlooker reports whether a call is an onlooker's.
func IsOnlooker(ctx context.Context) bool { return ctx.Value(onlooker{}) != nil }
