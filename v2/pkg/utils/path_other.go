//go:build !windows

package utils

import (
	"errors"
	"fmt"
)

var errNotWindows = fmt.Errorf("this function works on Windows only: %w", errors.ErrUnsupported)

func isPathValid(string) (bool, error)         { return false, errNotWindows }
func isMountedFolder(string) (bool, error)     { return false, errNotWindows }
func createSymlink(string, string, bool) error { return errNotWindows }
