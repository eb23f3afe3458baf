//go:build !windows

package machine

func sanPolicy() (string, error) { return "", ErrNotWindows }

func longPaths() (bool, error) { return false, ErrNotWindows }
