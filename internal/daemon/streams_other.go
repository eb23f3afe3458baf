//go:build !windows

package daemon

func fillStreams() error { return nil }
