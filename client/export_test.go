package client

import "time"

var (
	Endpoint      = endpoint
	SocketDirFrom = socketDir
	Explain       = explain
)

// WithAfter replaces time.After, which paces the waiting for an endpoint.
func WithAfter(after func(time.Duration) <-chan time.Time) Option {
	return func(s *settings) { s.after = after }
}
