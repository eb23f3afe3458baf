//go:build !windows

package daemon

import "os"

func fillStreams() error { return nil }

// setStandardError is for services, which only Windows has.
func setStandardError(*os.File) (undo func(), err error) { return func() {}, nil }
