//go:build !windows

package mounter

import "errors"

func spaceAt(string) (total, available int64, err error) { return 0, 0, errors.ErrUnsupported }
