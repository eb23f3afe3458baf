//go:build !windows

package scm

func connect() (Manager, error) { return nil, ErrNotWindows }
