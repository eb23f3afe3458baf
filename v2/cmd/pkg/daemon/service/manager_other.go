//go:build !windows

package service

// Run fails: only Windows has a service manager.
func Run(Service) (exitCode uint32, err error) { return 0, ErrNotStarted }
